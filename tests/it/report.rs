//! The report from hand-written records: structure, safety, languages, and a real browser.

use std::collections::BTreeSet;
use std::path::Path;

use gpu_assay::report::section::SECTIONS;
use gpu_assay::report::{Catalogue, FORMATS, Input, Lang, html, json, terminal};
use regex::Regex;

use crate::records::{self, Draft, METHODS};

fn all() -> [(&'static str, Draft); 4] {
    [
        ("host", records::host()),
        ("eight", records::eight_gpus()),
        ("nothing", records::nothing()),
        ("hostile", records::hostile()),
    ]
}

fn page(draft: &Draft, lang: Lang) -> String {
    html(&draft.record, &draft.assessment, lang, METHODS).unwrap()
}

/// Runs `check` on every page: each record in each language.
fn each_page(check: impl Fn(&str, &str)) {
    for (name, draft) in all() {
        for lang in Lang::ALL {
            check(&format!("{name}, {lang}"), &page(&draft, lang));
        }
    }
}

/// Tags in order, attributes included, without what is inside `<style>`.
fn tags(page: &str) -> Vec<String> {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    let tag = Regex::new(r#"<(?:[^<>"]|"[^"]*")*>"#).unwrap();
    [before, after].iter().flat_map(|part| tag.find_iter(part)).map(|m| m.as_str().to_owned()).collect()
}

#[test]
fn tags_are_balanced_and_ids_unique() {
    let void = ["meta", "br", "!doctype"];
    let id = Regex::new(r#" id="([^"]*)""#).unwrap();
    each_page(|name, page| {
        let mut open: Vec<String> = Vec::new();
        let mut ids = BTreeSet::new();
        for tag in tags(page) {
            let word: String =
                tag[1..].chars().take_while(|c| c.is_ascii_alphanumeric() || "/!".contains(*c)).collect();
            match word.strip_prefix('/') {
                Some(closed) => {
                    assert_eq!(open.pop().as_deref(), Some(closed), "{name}: {tag} closes the wrong element")
                }
                None if tag.ends_with("/>") || void.contains(&word.trim_end_matches('/')) => {}
                None => open.push(word),
            }
            if let Some(found) = id.captures(&tag) {
                assert!(ids.insert(found[1].to_owned()), "{name}: id {} twice", &found[1]);
            }
        }
        assert!(open.is_empty(), "{name}: never closed: {open:?}");
    });
}

#[test]
fn pages_are_self_contained_and_inert() {
    // Attributes that load, run or send something, by name; values are checked for `href` alone.
    let allowed = Regex::new(
        r#"^(charset|name|content|http-equiv|lang|class|id|viewBox|d|cx|cy|r|x|y|width|height|role|href|scope|tabindex|text-anchor|aria-hidden|aria-label|data-label)$"#,
    )
    .unwrap();
    let attribute = Regex::new(r#" ([a-zA-Z-]+)="([^"]*)""#).unwrap();
    let elements = Regex::new(
        r#"^</?(html|head|meta|title|style|body|svg|symbol|circle|path|rect|text|desc|use|main|footer|p|strong|section|header|h1|h2|h3|dl|dt|dd|div|span|ul|li|nav|a|table|caption|thead|tbody|tr|th|td|small|figure|figcaption|article|code|pre|br)[ />]|^<!doctype html>"#,
    )
    .unwrap();
    each_page(|name, page| {
        for tag in tags(page) {
            assert!(elements.is_match(&tag), "{name}: {tag}");
            for part in attribute.captures_iter(&tag) {
                assert!(allowed.is_match(&part[1]), "{name}: attribute {} in {tag}", &part[1]);
                assert!(&part[1] != "href" || part[2].starts_with('#'), "{name}: {tag} leaves the page");
            }
        }
        assert!(!page.contains("url(") && !page.contains("@import"), "{name}: the stylesheet loads something");
        for c in page.chars() {
            let hidden = c.is_control() && c != '\n'
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(!hidden, "{name}: U+{:04X} in the page", c as u32);
        }
    });
}

#[test]
fn pages_are_small_and_the_same_every_time() {
    for (name, draft) in all() {
        let first = page(&draft, Lang::En);
        assert!(first.len() <= 300_000, "{name}: {} bytes", first.len());
        assert_eq!(first, page(&draft, Lang::En), "{name}");
    }
}

#[test]
fn every_section_is_registered_and_has_its_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(root.join("src/report/section")).unwrap();
    let stems: BTreeSet<String> =
        files.map(|f| f.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let helpers = ["mod", "domain"].map(str::to_owned).into();
    let registered: BTreeSet<String> = SECTIONS.iter().map(|s| s.id.to_owned()).collect();
    assert_eq!(&stems - &helpers, registered);
    for section in SECTIONS.iter().filter(|s| s.listed) {
        assert!(Catalogue::of(Lang::En).texts().contains_key(&format!("section.{}", section.id)), "{}", section.id);
    }
    let names: BTreeSet<&str> = FORMATS.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), FORMATS.len());
}

#[test]
fn every_key_of_a_template_or_of_the_code_exists() {
    let key = Regex::new(r#"t\(key="([a-z_.0-9]+)"\)|(?:\.t|\.fill|words\.text)\(\s*"([a-z_.0-9]+)""#).unwrap();
    let texts = Catalogue::of(Lang::En).texts();
    let mut folders = vec!["src/report".to_owned(), "report-templates".to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.to_str().unwrap().to_owned());
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for found in key.captures_iter(text.split("#[cfg(test)]").next().unwrap()) {
                let key = found.get(1).or(found.get(2)).unwrap().as_str();
                assert!(texts.contains_key(key), "{}: no text \"{key}\"", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "only {seen} keys were found");
}

#[test]
fn the_verdict_its_reach_and_the_simulation_are_unmistakable() {
    let draft = records::eight_gpus();
    let shown = page(&draft, Lang::En);
    assert!(shown.contains("Not accepted") && shown.contains("No performance limit applied to 12 measured numbers"));
    assert!(shown.contains("<strong>SIMULATED</strong>") && shown.contains("@top-center{content:\"SIMULATED\""));
    assert!(page(&draft, Lang::ZhCn).contains("验收不通过"));
    let first = shown.find("mark fail").unwrap();
    assert!(first < shown.find("mark pass").unwrap(), "failures come first");
    let host = page(&records::host(), Lang::En);
    assert!(host.contains("Accepted") && !host.contains("SIMULATED"));
    let nothing = page(&records::nothing(), Lang::En);
    assert!(nothing.contains("The suite demanded nothing of this machine."));
    assert!(nothing.contains("None: everything that was asked for was tested."));
    assert!(nothing.contains("unchecked") && nothing.contains("ended without an end mark"));
    // The record alone says simulated: it cannot be unmarked by the assessment.
    let mut unmarked = records::eight_gpus();
    unmarked.assessment.simulated = false;
    assert!(page(&unmarked, Lang::En).contains("<strong>SIMULATED</strong>"));
}

#[test]
fn a_wrong_result_shows_no_speed() {
    let shown = page(&records::eight_gpus(), Lang::En);
    assert!(shown.contains("<td>void</td>"));
}

#[test]
fn every_format_renders_every_record() {
    for (name, draft) in all() {
        for format in FORMATS {
            let input = Input {
                record: &draft.record,
                assessment: &draft.assessment,
                lang: Lang::En,
                methods: METHODS,
                colour: true,
                width: 100,
            };
            let text = (format.render)(&input).unwrap_or_else(|e| panic!("{name} as {}: {e}", format.name));
            assert!(text.ends_with('\n'), "{name} as {}", format.name);
        }
    }
}

#[test]
fn json_is_the_assessment() {
    let mut draft = records::eight_gpus();
    draft.assessment.requirements[0].reason = None;
    let back = serde_json::from_str(&json(&draft.assessment).unwrap());
    assert_eq!(draft.assessment, back.unwrap());
}

#[test]
fn a_terminal_ends_with_the_verdict() {
    for (name, draft) in all() {
        if name != "hostile" {
            insta::assert_snapshot!(
                format!("terminal-{name}"),
                terminal(&draft.record, &draft.assessment, Lang::En, false, 110)
            );
        }
    }
    let draft = records::hostile();
    let text = terminal(&draft.record, &draft.assessment, Lang::En, false, 80);
    assert!(text.chars().all(|c| !c.is_control() || c == '\n'), "{text:?}");
    let colours = terminal(&draft.record, &draft.assessment, Lang::ZhCn, true, 80);
    let escapes = Regex::new("\u{1b}\\[[0-9;]+m").unwrap();
    assert!(escapes.replace_all(&colours, "").chars().all(|c| !c.is_control() || c == '\n'));
}
