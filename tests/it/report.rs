//! The report from hand-written records: structure, safety, languages, and a real browser.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use gpu_assay::record::{Disk, DiskKind, Observed};
use gpu_assay::report::section::SECTIONS;
use gpu_assay::report::{Catalogue, FORMATS, Input, Lang, html, terminal};
use gpu_assay::unit::Bytes;
use regex::Regex;
use serde_json::json;

use crate::browser::{Browser, from_base64};
use crate::component::missing;
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
        r#"^</?(html|head|meta|title|style|body|svg|symbol|circle|path|rect|text|desc|use|main|footer|p|strong|section|header|h1|h2|h3|dl|dt|dd|div|span|ul|li|nav|a|table|caption|thead|tbody|tr|th|td|small|article|code|pre|br)[ />]|^<!doctype html>"#,
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
fn every_message_has_words() {
    let unknown = Regex::new(r"\[[a-z_]+\.[a-z_.]+\]").unwrap();
    each_page(|name, page| {
        let found = unknown.find(page);
        assert!(found.is_none() || name.starts_with("hostile"), "{name}: {}", found.unwrap().as_str());
    });
}

#[test]
fn a_wrong_result_shows_no_speed() {
    let shown = page(&records::eight_gpus(), Lang::En);
    assert!(shown.contains("<td>void</td>"));
}

#[test]
fn a_proposed_instance_is_shown_as_a_proposal_and_disks_with_their_names() {
    let (_, mut draft) = all().into_iter().next().unwrap();
    let disk = Disk { name: "nvme0n1".to_owned(), size: Bytes(3.84e12), kind: DiskKind::Nvme, model: None };
    draft.record.inventory.host.disks = Observed::Value(vec![disk]);
    assert!(!page(&draft, Lang::En).contains("a proposal; nothing was held against it"));
    draft.assessment.proposed_instance = Some("aws/p5.48xlarge".to_owned());
    for (lang, words) in [(Lang::En, "a proposal; nothing was held against it"), (Lang::ZhCn, "仅为建议")] {
        let page = page(&draft, lang);
        assert!(page.contains("aws/p5.48xlarge") && page.contains(words) && page.contains("nvme0n1"), "{lang:?}");
    }
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
    let back = serde_json::from_str(&gpu_assay::report::json(&draft.assessment).unwrap());
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

/// Writes each page into a folder of the build, where people can look at them; the browser tests load them from there.
fn write_pages() -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, draft) in all() {
        for lang in Lang::ALL {
            std::fs::write(folder.join(format!("{name}-{lang}.html")), page(&draft, lang)).unwrap();
        }
    }
    folder
}

/// Texts whose contrast with the colour behind them is below 4.5:1 (WCAG 2.1 AA), as `ratio: text`.
const LOW_CONTRAST: &str = r#"
const channels = c => c.match(/[\d.]+/g).map(Number);
const linear = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const luminance = c => { const [r, g, b] = channels(c); return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b); };
const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = e => {
  if (e.tagName === 'text' && e.previousElementSibling && e.previousElementSibling.classList.contains('cell'))
    return getComputedStyle(e.previousElementSibling).fill;
  for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (channels(c)[3] !== 0) return c;
  }
  return 'rgb(255, 255, 255)';
};
const bad = [];
let seen = 0;
for (const e of document.querySelectorAll('body *')) {
  if (['title', 'desc'].includes(e.tagName) || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
  const style = getComputedStyle(e);
  const found = ratio(e.tagName === 'text' ? style.fill : style.color, behind(e));
  seen += 1;
  if (found < 4.5) bad.push(found.toFixed(2) + ': ' + e.textContent.slice(0, 40));
}
return [seen, bad];
"#;

#[test]
fn a_browser_shows_pages_safely_and_legibly() {
    let Some(browser) = Browser::start() else { return missing("chromium") };
    let folder = write_pages();
    for (name, _) in all() {
        for lang in Lang::ALL {
            let file = folder.join(format!("{name}-{lang}.html"));
            browser.open(&file);
            assert_eq!(browser.console(), [""; 0], "{name}, {lang}: console");
            assert!(!browser.has_dialog(), "{name}, {lang}: a dialog");
            let active = "return document.querySelectorAll('script, img, iframe, object, embed, link, form, [onload], [onerror], [style]').length";
            assert_eq!(browser.run(active), 0, "{name}, {lang}: active elements");
            let loaded = "return performance.getEntriesByType('resource').length";
            assert_eq!(browser.run(loaded), 0, "{name}, {lang}: something was requested");
            let title = browser.run("return document.title");
            assert!(title.as_str().unwrap().contains(if lang == Lang::En {
                "GPU acceptance report"
            } else {
                "验收"
            }));
            // The stylesheet was accepted under the page's own policy.
            assert_eq!(browser.run("return document.styleSheets.length"), 1, "{name}, {lang}");
            assert_ne!(browser.run("return getComputedStyle(document.querySelector('main')).fontFamily"), "");
        }
    }
    narrow(&browser, &folder);
    contrast(&browser, &folder);
    print(&browser, &folder);
}

/// Nothing sticks out sideways on a telephone; what is wide scrolls within itself.
fn narrow(browser: &Browser, folder: &Path) {
    let size = json!({"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": true});
    browser.devtools("Emulation.setDeviceMetricsOverride", size);
    for (name, _) in all() {
        for lang in Lang::ALL {
            browser.open(&folder.join(format!("{name}-{lang}.html")));
            let width = browser.run("return [innerWidth, document.documentElement.scrollWidth]");
            assert_eq!(width, json!([375, 375]), "{name}, {lang}");
        }
    }
    browser.devtools("Emulation.clearDeviceMetricsOverride", json!({}));
}

fn contrast(browser: &Browser, folder: &Path) {
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.devtools("Emulation.setEmulatedMedia", media);
        for name in ["eight-en", "host-zh-CN", "nothing-en"] {
            browser.open(&folder.join(format!("{name}.html")));
            let dark = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 23)";
            assert_eq!(dark, scheme == "dark", "{name}: the scheme is not followed");
            let found = browser.run(LOW_CONTRAST);
            assert!(found[0].as_u64().unwrap() > 50, "{name}: {found}");
            assert_eq!(found[1], json!([]), "{name}, {scheme}");
        }
    }
}

/// Every printed page carries the report's id and hash, its number, and SIMULATED where that is due.
fn print(browser: &Browser, folder: &Path) {
    if Command::new("pdftotext").arg("-v").output().is_err() {
        return missing("pdftotext");
    }
    for (name, mark, first) in [
        ("eight-en", "SIMULATED", "Page 1 of "),
        ("eight-zh-CN", "模拟数据", "第 1 页，共 "),
        ("host-en", "", "Page 1 of "),
    ] {
        browser.open(&folder.join(format!("{name}.html")));
        let options = json!({"preferCSSPageSize": true, "printBackground": true});
        let pdf = from_base64(browser.devtools("Page.printToPDF", options)["data"].as_str().unwrap());
        let file = folder.join(format!("{name}.pdf"));
        std::fs::write(&file, pdf).unwrap();
        let text =
            Command::new("pdftotext").args(["-layout".as_ref(), file.as_os_str(), "-".as_ref()]).output().unwrap();
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let pages: Vec<&str> = text.trim_end_matches('\u{c}').split('\u{c}').collect();
        assert!(pages.len() > 2 && pages[0].contains(first), "{name}: {}", pages[0]);
        for (number, page) in pages.iter().enumerate() {
            assert!(page.contains("gpu-assay 01J9Z") && page.contains("sha256"), "{name}, page {number}: {page}");
            assert_eq!(
                page.contains("SIMULATED") || page.contains("模拟数据"),
                !mark.is_empty(),
                "{name}, page {number}"
            );
        }
    }
}
