//! House rules as a test: who may use whom, what every file starts with, what never appears.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Design §3: each module and the modules of ours it may use. `cli` and `main` may use everything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("unit", &[]),
    ("exit", &[]),
    ("kernel", &[]),
    ("stats", &["unit"]),
    ("record", &["unit", "stats"]),
    // Hand-written files: places, nearest names, limits; shared by the parsers below.
    ("config", &["unit", "record"]),
    ("spec", &["unit", "record", "config"]),
    ("suite", &["unit", "record", "config"]),
    ("offer", &["unit", "record", "config"]),
    ("event", &["record", "unit"]),
    ("backend", &["record", "unit", "kernel"]),
    ("backend/sim", &["record", "unit", "kernel", "spec"]),
    // Discovery matches devices with the spec table: which model is this PCI id?
    ("discover", &["backend", "record", "unit", "spec"]),
    ("benchmark", &["backend", "kernel", "record", "unit"]),
    ("plan", &["suite", "benchmark", "spec", "record", "unit"]),
    ("measure", &["benchmark", "backend", "stats", "record", "event", "unit", "exit"]),
    ("judge", &["record", "spec", "suite", "offer", "stats", "unit"]),
    ("report", &["judge", "record", "unit"]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.map(|e| e.expect("readable folder").path()) {
        if entry.is_dir() {
            files(&entry, extension, found);
        } else if entry.extension().is_some_and(|e| e == extension) {
            found.push(entry);
        }
    }
    found.sort();
}

/// Rust files below `folder`, as path relative to the root, with their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    files(&root().join(folder), "rs", &mut found);
    let name = |p: &Path| p.strip_prefix(root()).expect("below root").to_string_lossy().into_owned();
    found.iter().map(|p| (name(p), std::fs::read_to_string(p).expect("UTF-8 source"))).collect()
}

/// Files below `src` that are compiled into the product: not those that only hold unit tests.
fn product_sources() -> Vec<(String, String)> {
    let is_test = |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/") || path.ends_with("/testing.rs");
    sources("src").into_iter().filter(|(path, _)| !is_test(path)).collect()
}

/// The part of a file before its unit tests, without comment lines.
fn product_code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    code.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn module_of(path: &str) -> String {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    if inside.starts_with("backend/sim/") {
        return "backend/sim".to_owned();
    }
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs").to_owned()
}

fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names: Vec<&str> = if let Some(group) = rest.strip_prefix('{') {
            group.split('}').next().unwrap_or("").split(',').map(str::trim).collect()
        } else {
            vec![rest]
        };
        for name in names {
            let word: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !word.is_empty() {
                used.push(word);
            }
        }
    }
    used
}

#[test]
fn modules_use_only_what_the_design_allows() {
    let rules: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut broken = Vec::new();
    for (path, text) in product_sources() {
        let module = module_of(&path);
        if matches!(module.as_str(), "cli" | "main" | "lib") {
            continue;
        }
        let allowed = rules.get(module.as_str()).unwrap_or_else(|| panic!("{path}: no rule for module {module}"));
        let own = module.split('/').next().unwrap_or(&module).to_owned();
        for used in used_modules(&product_code(&text)) {
            if used != own && !allowed.contains(&used.as_str()) {
                broken.push(format!("{path} uses crate::{used}"));
            }
        }
    }
    assert!(broken.is_empty(), "dependency rule broken:\n{}", broken.join("\n"));
}

#[test]
fn the_rule_reader_sees_uses() {
    assert_eq!(used_modules("use crate::judge::x; crate::{stats, unit::Seconds}"), ["judge", "stats", "unit"]);
}

#[test]
fn every_file_says_what_it_is_for() {
    let bare: Vec<String> = ["src", "tests/it", "benches"]
        .into_iter()
        .flat_map(sources)
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(bare.is_empty(), "no //! at the top of {bare:?}");
}

#[test]
fn nothing_forbidden_in_product_code() {
    // (text, who may have it)
    let forbidden: &[(&str, &[&str])] = &[
        ("println!", &["src/cli/"]),
        ("eprintln!", &["src/cli/"]),
        ("Instant::now", &["src/measure/", "src/backend/host/", "src/cli/"]),
        ("SystemTime::now", &["src/measure/", "src/cli/"]),
        ("unsafe {", &["src/backend/", "src/measure/"]),
        ("todo!(", &[]),
        ("unimplemented!(", &[]),
    ];
    let mut broken = Vec::new();
    for (path, text) in product_sources() {
        let code = product_code(&text);
        for (word, allowed) in forbidden {
            if code.contains(word) && !allowed.iter().any(|a| path.starts_with(a)) {
                broken.push(format!("{path}: {word}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Files of a registry's folder that are benchmarks, checks, sections …: each must be named in its `mod.rs`.
#[test]
fn every_benchmark_file_is_in_the_registry() {
    let registered: Vec<&str> = gpu_assay::benchmark::ALL.iter().map(|b| b.meta().id).collect();
    let text = std::fs::read_to_string(root().join("src/benchmark/mod.rs")).expect("registry");
    let modules: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("pub mod ")).map(|l| l.trim_end_matches(';')).collect();
    assert_eq!(registered.len(), modules.len(), "{registered:?} {modules:?}");
    for id in registered {
        assert!(modules.contains(&id), "{id} is registered but has no file of that name");
        let meta = gpu_assay::benchmark::find(id).expect("registered").meta();
        assert!(meta.version >= 1, "{id}: no method version");
        for (what, text) in
            [("measures", meta.measures), ("why", meta.why), ("method", meta.method), ("limits", meta.limits)]
        {
            assert!(text.len() > 40, "{id}: {what} says too little");
        }
        assert!(
            meta.metrics.iter().all(|m| m.id.starts_with(&format!("{id}."))),
            "{id}: metric names start with the id"
        );
    }
}
