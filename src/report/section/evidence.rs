//! Evidence: which files hold it, their hashes, and how to repeat the run and the judgement.

use serde::Serialize;
use sha2::{Digest, Sha256};
use tera::Value;

use super::{Section, view};
use crate::report::json;
use crate::report::text::{LONG, SHORT, clean};
use crate::report::view::{Fact, Page};

/// The section.
pub const SECTION: Section = Section {
    id: "evidence",
    template: include_str!("../../../report-templates/section/evidence.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct Evidence {
    files: Vec<Fact>,
    hashes: Vec<Fact>,
    repeat: String,
    judge: String,
}

fn build(page: &mut Page) -> Option<Value> {
    let record = page.record;
    let file = |name: &str, key: &str| Fact { name: name.to_owned(), value: page.t(key) };
    let hash = json(page.assessment).map(|text| Sha256::digest(text.as_bytes())).ok();
    let hash = hash.map(|h| h.iter().map(|b| format!("{b:02x}")).collect::<String>()).unwrap_or_default();
    let mut hashes = vec![
        Fact { name: "assessment.json".to_owned(), value: hash },
        page.fact("suite_hash", format!("{} {}", clean(&record.suite.sha256, SHORT), clean(&record.suite.name, SHORT))),
    ];
    if let Some(offer) = &record.offer {
        let text = format!("{} {}", clean(&offer.sha256, SHORT), clean(&offer.name, SHORT));
        hashes.push(page.fact("offer_hash", text));
    }
    let binary = record.tool.binary_sha256.as_ref().map_or_else(|| page.t("word.unknown"), |h| clean(h, SHORT));
    hashes.push(page.fact("binary_hash", binary));
    hashes.push(page.fact("seed", record.run.seed.to_string()));
    hashes.push(page.fact("judged_by", clean(&page.assessment.judged_by, SHORT)));
    let arguments: Vec<String> = record.run.arguments.iter().map(|a| quoted(&clean(a, LONG))).collect();
    view(&Evidence {
        files: vec![
            file("record.json", "evidence.record"),
            file("assessment.json", "evidence.assessment"),
            file("report.html", "evidence.report"),
        ],
        hashes,
        repeat: format!("gpu-assay {}", arguments.join(" ")),
        judge: "gpu-assay judge record.json".to_owned(),
    })
}

/// As a shell needs it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:,./@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}
