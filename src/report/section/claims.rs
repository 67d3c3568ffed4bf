//! What the provider claims, beside what the vendor publishes. Left out where the offer claims nothing.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::claim::CheckedClaim;
use crate::report::text::{LONG, clean};
use crate::report::view::{Page, Row, Table};

/// The section.
pub const SECTION: Section = Section {
    id: "claims",
    template: include_str!("../../../report-templates/section/claims.html"),
    listed: true,
    build,
};

/// Claims shown at most; the file holds all.
const MOST: usize = 60;

#[derive(Serialize)]
struct Claims {
    claims: Table,
    hidden: Option<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let claims = &page.assessment.claims;
    if claims.is_empty() {
        return None;
    }
    let hidden = claims.len().saturating_sub(MOST);
    let hidden = (hidden > 0).then(|| page.fill("requirements.hidden", &[("n", &hidden.to_string())]));
    let columns = ["claims.text", "claims.class", "claims.why"].map(|k| page.t(k)).to_vec();
    let rows = claims.iter().take(MOST).map(|c| row(page, c)).collect();
    view(&Claims { claims: Table { caption: String::new(), columns, rows }, hidden })
}

fn row(page: &Page, claim: &CheckedClaim) -> Row {
    let mut why: Vec<String> = claim.statements.iter().map(|s| page.message(&s.message)).collect();
    why.dedup();
    let class = page.words.text(&format!("claim.class.{}", claim.class.name()));
    Row { name: clean(&claim.text, LONG), cells: vec![class, why.join(" ")] }
}
