//! The HTML report: one self-contained file. No script, no external request, a content security policy that allows the
//! one stylesheet by its hash and nothing else. Escaping is forced for every template; only charts, which escape
//! themselves, and the stylesheet, which is ours, are placed unescaped.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tera::{Context, Function, Kwargs, State, Tera, Value};

use super::locale::{Catalogue, Lang};
use super::section::SECTIONS;
use super::view::{Mark, Page};
use super::{MethodText, ReportError, json};
use crate::judge::Assessment;
use crate::record::Record;

const PAGE: &str = include_str!("../../report-templates/page.html");
const BLOCKS: &str = include_str!("../../report-templates/blocks.html");
const STYLE: &str = include_str!("../../report-templates/style.css");

/// What the page itself shows around the sections.
#[derive(Serialize)]
struct Frame {
    lang: &'static str,
    title: String,
    csp: String,
    simulated: bool,
    record: String,
    verdict: Mark,
    verdict_id: String,
    validity_id: String,
    hash: String,
    contents: Vec<Entry>,
}

/// A line of the table of contents.
#[derive(Serialize)]
struct Entry {
    id: &'static str,
    title: String,
}

/// The report as one HTML file, in the language `lang`. `methods` are the texts for the method section.
pub fn html(
    record: &Record,
    assessment: &Assessment,
    lang: Lang,
    methods: &[MethodText],
) -> Result<String, ReportError> {
    let words = Catalogue::of(lang);
    let mut page = Page::new(record, assessment, methods, words);
    let mut context = Context::new();
    let mut contents = Vec::new();
    for section in SECTIONS {
        let view = (section.build)(&mut page);
        if view.is_some() && section.listed {
            contents.push(Entry { id: section.id, title: page.t(&format!("section.{}", section.id)) });
        }
        context.insert_value(section.id, view.unwrap_or_else(Value::none));
    }
    let hash = hex(&Sha256::digest(json(assessment)?.as_bytes()));
    let style = stylesheet(&page, &hash);
    context.insert("frame", &frame(&page, &style, hash, contents));
    let mut tera = templates().clone();
    tera.register_function("t", Translate(words));
    tera.register_function("stylesheet", Ready(Arc::new(vec![style])));
    tera.register_function("chart", Ready(Arc::new(page.charts)));
    Ok(tera.render("page.html", &context)?)
}

fn frame(page: &Page, style: &str, hash: String, contents: Vec<Entry>) -> Frame {
    let csp = format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(style.as_bytes()))
    );
    let verdict = page.verdict();
    let record = super::clean(&page.record.id, 80);
    Frame {
        lang: page.words.lang.tag(),
        title: page.fill("page.title", &[("id", &record), ("verdict", &verdict.word)]),
        csp,
        simulated: page.assessment.simulated || page.record.run.simulated,
        record,
        verdict,
        verdict_id: word(&page.assessment.verdict),
        validity_id: word(&page.assessment.validity),
        hash,
        contents,
    }
}

/// The snake_case name a unit variant has in JSON.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Templates, parsed once.
fn templates() -> &'static Tera {
    static TEMPLATES: OnceLock<Tera> = OnceLock::new();
    TEMPLATES.get_or_init(|| environment().expect("templates are part of the program and parse"))
}

fn environment() -> tera::TeraResult<Tera> {
    let mut tera = Tera::default();
    // The empty suffix matches every name: escaping can not be forgotten for a template.
    tera.autoescape_on([""]);
    // Functions are replaced for each report; templates only parse when they are known.
    tera.register_function("t", Translate(Catalogue::of(Lang::En)));
    tera.register_function("stylesheet", Ready(Arc::new(Vec::new())));
    tera.register_function("chart", Ready(Arc::new(Vec::new())));
    let mut all = vec![("page.html".to_owned(), PAGE.to_owned()), ("blocks.html".to_owned(), BLOCKS.to_owned())];
    let mut includes = String::new();
    for section in SECTIONS {
        let name = format!("section/{}.html", section.id);
        let heading = if section.listed {
            format!("<h2>{{{{ t(key=\"section.{}\") }}}}</h2>", section.id)
        } else {
            String::new()
        };
        includes.push_str(&format!(
            "{{% if {0} %}}<section id=\"{0}\">{heading}{{% set s = {0} %}}{{% include \"{name}\" %}}</section>{{% endif %}}\n",
            section.id
        ));
        all.push((name, section.template.to_owned()));
    }
    all.push(("sections.html".to_owned(), includes));
    tera.add_raw_templates(all)?;
    Ok(tera)
}

/// `{{ t(key="…") }}`: a text of the catalogue.
struct Translate(&'static Catalogue);

impl Function<tera::TeraResult<String>> for Translate {
    fn call(&self, arguments: Kwargs, _: &State) -> tera::TeraResult<String> {
        Ok(self.0.text(arguments.must_get::<&str>("key")?))
    }
}

/// `{{ chart(id=n) }}`, `{{ stylesheet() }}`: markup made by us, placed as it is.
struct Ready(Arc<Vec<String>>);

impl Function<tera::TeraResult<String>> for Ready {
    fn call(&self, arguments: Kwargs, _: &State) -> tera::TeraResult<String> {
        let id = arguments.get::<usize>("id")?.unwrap_or(0);
        Ok(self.0.get(id).cloned().unwrap_or_default())
    }
    fn is_safe(&self) -> bool {
        true
    }
}

/// The stylesheet with the footer of this report's printed pages.
fn stylesheet(page: &Page, hash: &str) -> String {
    let id = css_text(&page.record.id);
    let simulated = if page.assessment.simulated || page.record.run.simulated {
        format!("@top-center{{content:\"{}\";font-weight:700;color:#a3001b}}", css_text(&page.t("simulated.short")))
    } else {
        String::new()
    };
    // Our own words: the placeholders become counters between the parts of a CSS string.
    let counters = [("page", "\" counter(page) \""), ("pages", "\" counter(pages) \"")];
    let footer = page.fill("page.footer", &counters);
    format!(
        "{STYLE}@page{{{simulated}@bottom-left{{content:\"gpu-assay {id} · sha256 {}…\"}}@bottom-right{{content:\"{footer}\"}}}}\n",
        &hash[..16.min(hash.len())]
    )
}

/// Letters, digits and plain punctuation only: nothing that could end a CSS string or a style element.
fn css_text(text: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ':' | '–' | ',');
    text.chars().filter(plain).take(80).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// RFC 4648 base 64 with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        for (text, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }

    #[test]
    fn nothing_ends_a_css_string() {
        for lang in Lang::ALL {
            let footer = Catalogue::of(lang).fill("page.footer", &[("page", "1"), ("pages", "2")]);
            assert_eq!(css_text(&footer.replace('，', "")), footer.replace('，', ""));
        }
        assert_eq!(css_text("a\"}</style><script>\\ b–c"), "astylescript b–c");
    }

    #[test]
    fn templates_place_nothing_unescaped_but_charts_and_the_stylesheet() {
        let sections = SECTIONS.iter().map(|s| s.template);
        for template in sections.chain([PAGE, BLOCKS]) {
            assert!(!template.contains("safe"), "a filter that unescapes: {template}");
            assert!(!template.contains(" style="), "an inline style: {template}");
        }
        assert!(environment().is_ok());
    }
}
