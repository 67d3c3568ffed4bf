//! Known claims from a table, and claims generated from every figure.

use super::*;
use crate::spec::{GpuSpec, SpecTable, table};
use crate::unit::Unit;

const TABLE: &str = include_str!("../../../tests/fixtures/claims/table");

fn class(gpu: &GpuSpec, text: &str) -> Class {
    worst(&judge_text(text, &[gpu], None, table()))
}

#[test]
fn known_claims_are_what_they_are() {
    let mut wrong = Vec::new();
    for line in TABLE.lines().filter(|l| !l.starts_with('#')) {
        let [model, text, expected] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let gpu = table().get(model).unwrap_or_else(|| panic!("{model}"));
        let statements = judge_text(text, &[gpu], None, table());
        let got = worst(&statements).name();
        if got != expected {
            let seen: Vec<String> =
                statements.iter().map(|s| format!("{} {} {}", s.value, s.class.name(), s.message.id)).collect();
            wrong.push(format!("{model} | {text}\n  expected {expected}, got {got}: {}", seen.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Figures of arithmetic with the type they are of.
fn rates(gpu: &GpuSpec) -> Vec<(&str, &str, f64)> {
    let is_rate = |u: Unit| matches!(u, Unit::FlopPerSecond | Unit::OpPerSecond);
    let all = gpu.figures.iter().filter(|(_, f)| is_rate(f.value.unit));
    all.map(|(n, f)| (n.as_str(), n.split('_').next().unwrap_or_default(), f.value.value)).collect()
}

/// The words that name the units of a figure beyond doubt.
fn units(name: &str) -> &'static str {
    match name.split_once('_').map(|(_, kind)| kind) {
        Some("vector") => "vector",
        Some("tensor_fp16acc") => "tensor, FP16 accumulate",
        Some("tensor_fp32acc") => "tensor, FP32 accumulate",
        Some("matrix") => "matrix",
        _ => "tensor",
    }
}

fn wordings(value: f64, data_type: &str, units: &str) -> [String; 4] {
    let t = value / 1e12;
    let unit = if data_type.starts_with("int") { "TOPS" } else { "TFLOPS" };
    let upper = data_type.to_uppercase();
    // The comma would end a statement; accumulation is said in brackets.
    let units = units.split_once(", ").map_or(units.to_owned(), |(a, b)| format!("{a} ({b})"));
    [
        format!("{t:.4} {unit} {upper} {units}"),
        format!("{upper} {units}: {t:.4}{unit}"),
        format!("up to {:.6} P{} of {units} {data_type}", t / 1000.0, &unit[1..]),
        format!("{upper} {units} 算力 {t:.4}T"),
    ]
}

#[test]
fn every_figure_stated_plainly_is_true() {
    for gpu in table().all() {
        for (name, data_type, value) in rates(gpu) {
            for text in wordings(value, data_type, units(name)) {
                assert_eq!(class(gpu, &text), Class::True, "{}: {name}: {text}", gpu.id);
            }
        }
        let gb = |name: &str| gpu.figure(name).map(|f| f.value.value / 1e9);
        if let Some(size) = gb("memory_size") {
            for text in [
                format!("{size} GB"),
                format!("{size}GB GPU memory"),
                format!("{size} GiB VRAM"),
                format!("显存{size}G"),
            ] {
                assert_eq!(class(gpu, &text), Class::True, "{}: {text}", gpu.id);
            }
        }
        if let Some(rate) = gb("memory_bandwidth") {
            for text in [
                format!("{rate} GB/s memory bandwidth"),
                format!("{:.4}TB/s", rate / 1e3),
                format!("显存带宽 {rate}GB/s"),
            ] {
                assert_eq!(class(gpu, &text), Class::True, "{}: {text}", gpu.id);
            }
        }
    }
}

#[test]
fn a_sparse_figure_is_true_only_with_sparsity() {
    for gpu in table().all() {
        for (name, data_type, value) in rates(gpu) {
            let Some(factor) = gpu.sparsity(name) else { continue };
            let of_type: Vec<f64> = rates(gpu).iter().filter(|r| r.1 == data_type).map(|r| r.2).collect();
            // Twice the FP32-accumulate rate is the FP16-accumulate rate on some models.
            let is_dense = of_type.iter().any(|v| (factor * value / v - 1.0).abs() < 0.03);
            for text in wordings(factor * value, data_type, units(name)) {
                let got = class(gpu, &text);
                let right = got == Class::TrueWithSparsity || (is_dense && got == Class::TrueOfOtherVariant);
                assert!(right, "{}: {name}: {text}: {got:?}", gpu.id);
                let got = class(gpu, &format!("{text}, with sparsity").replace(", with", " with"));
                assert_eq!(got, Class::True, "{}: {name}: {text} with sparsity", gpu.id);
            }
        }
    }
}

#[test]
fn a_figure_of_another_type_is_never_true_and_is_explained() {
    for gpu in table().all() {
        for (name, data_type, value) in rates(gpu) {
            for other in ["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"].into_iter().filter(|t| *t != data_type)
            {
                let of_other: Vec<f64> = rates(gpu).iter().filter(|r| r.1 == other).map(|r| r.2).collect();
                let is_near = |v: &f64| (value / v - 1.0).abs() < 0.03;
                if of_other.iter().any(is_near) {
                    continue; // it is a figure of that type as well
                }
                let text = wordings(value, other, "")[0].clone();
                let got = class(gpu, &text);
                let explained = got.is_false() && got != Class::Impossible;
                assert!(explained, "{}: {name} as {other}: {text}: {got:?}", gpu.id);
            }
        }
    }
}

#[test]
fn directions_of_links_are_told_apart() {
    for gpu in table().all().iter().filter(|g| g.figure("peer_bandwidth").is_some()) {
        let one = gpu.figure("peer_bandwidth").unwrap().value.value / 1e9;
        let both = 2.0 * one;
        for (text, expected) in [
            (format!("{both} GB/s NVLink"), Class::True),
            (format!("NVLink {both} GB/s bidirectional"), Class::True),
            (format!("{one} GB/s per direction between GPUs"), Class::True),
            (format!("{both} GB/s NVLink per direction"), Class::TrueOfOtherDirection),
            (format!("NVLink 单向 {both}GB/s"), Class::TrueOfOtherDirection),
            (format!("NVLink {one} GB/s bidirectional"), Class::TrueOfOtherDirection),
        ] {
            assert_eq!(class(gpu, &text), expected, "{}: {text}", gpu.id);
        }
    }
}

#[test]
fn packages_and_devices_are_told_apart() {
    for gpu in table().all().iter().filter(|g| g.devices_per_package > 1) {
        for (name, data_type, value) in rates(gpu) {
            let half = value / f64::from(gpu.devices_per_package);
            let [whole, ..] = wordings(value, data_type, units(name));
            let [part, ..] = wordings(half, data_type, units(name));
            assert_eq!(class(gpu, &whole), Class::True, "{}: {whole}", gpu.id);
            assert_eq!(class(gpu, &format!("{whole} per device")), Class::TrueOfPackage, "{}: {whole}", gpu.id);
            assert_eq!(class(gpu, &format!("{part} per GCD")), Class::True, "{}: {part}", gpu.id);
        }
    }
}

#[test]
fn figures_of_a_namesake_are_not_taken_for_its_own() {
    let stem = |g: &GpuSpec| g.id.split('-').next().unwrap_or_default().to_owned();
    for gpu in table().all() {
        for other in table()
            .all()
            .iter()
            .filter(|o| o.id != gpu.id && stem(o) == stem(gpu) && stem(gpu).contains(char::is_numeric))
        {
            for (name, data_type, value) in rates(other) {
                let own = rates(gpu);
                let is_own = |factor: f64| own.iter().any(|r| (value / r.2 / factor - 1.0).abs() < 0.03);
                if is_own(1.0) || is_own(2.0) || is_own(4.0 / 3.0) || is_own(0.5) {
                    continue;
                }
                for text in wordings(value, data_type, units(name)) {
                    assert_eq!(
                        class(gpu, &text),
                        Class::TrueOfSibling,
                        "{} with {} of {}: {text}",
                        gpu.id,
                        name,
                        other.id
                    );
                }
            }
        }
    }
}

#[test]
fn what_no_figure_explains_is_impossible_and_words_alone_are_unknown() {
    for gpu in table().all() {
        for (name, data_type, _) in rates(gpu) {
            let [text, ..] = wordings(9.87e18, data_type, units(name));
            assert_eq!(class(gpu, &text), Class::Impossible, "{}: {text}", gpu.id);
        }
        assert_eq!(class(gpu, "fast, reliable, in stock"), Class::Unknown);
    }
    assert_eq!(worst(&judge_text("FP16 312 TFLOPS", &[], None, table())), Class::Unknown);
    let empty = SpecTable::default();
    assert!(judge_text("", &[], None, &empty).is_empty());
}

#[test]
fn hostile_text_is_read_without_harm() {
    let gpu = table().get("a100-sxm4-80gb").unwrap();
    for text in [
        "1e999 TFLOPS",
        "\u{2212}5 GB",
        "é-5 GB",
        "9".repeat(400).as_str(),
        "0 GB",
        "FP16 -5 TFLOPS",
        "١٢٣ TFLOPS",
        "5 TFLOPS\u{202e}",
        "💥 80 GB 💥",
        "1.2.3 GB",
        ",,,1,,,",
        "5/",
        "/5 GB",
    ] {
        judge_text(text, &[gpu], None, table());
    }
}

#[test]
fn what_the_offer_states_and_features_are_checked_too() {
    let offer = |model: &str, memory: Option<f64>, claims: &[&str]| {
        let mut offer = crate::judge::testing::offer(1);
        (offer.model, offer.memory) = (Some(model.to_owned()), memory.map(crate::unit::Bytes));
        let claim = |text: &&str| crate::offer::Claim { text: (*text).to_owned(), line: 1 };
        offer.claims = claims.iter().map(claim).collect();
        check(&offer, table())
    };
    let classes = |claims: Vec<CheckedClaim>| claims.iter().map(|c| c.class).collect::<Vec<_>>();
    assert_eq!(classes(offer("a100-sxm4-80gb", Some(80e9), &[])), [Class::True]);
    assert_eq!(classes(offer("h100-sxm5-80gb", Some(160e9), &[])), [Class::TrueOfPackage]);
    assert_eq!(classes(offer("rtx-4090", Some(48e9), &[])), [Class::TrueOfPackage]);
    assert_eq!(classes(offer("h100-sxm5-80gb", None, &["80 GB HBM3e"])), [Class::Impossible]);
    assert_eq!(classes(offer("h100-sxm5-80gb", None, &["80 GB HBM3"])), [Class::True]);
    assert_eq!(classes(offer("a100-sxm4-80gb", None, &["80 GB HBM2e"])), [Class::True]);
    assert_eq!(classes(offer("rtx-4090", None, &["1.008 TB/s memory bandwidth and NVLink"])), [Class::Impossible]);
    assert_eq!(classes(offer("h100-sxm5-80gb", None, &["-3.35 TB/s"])), [Class::Unknown]);
    for gpu in table().all() {
        let text = format!(
            "{} GB {}",
            gpu.figure("memory_size").unwrap().value.value / 1e9,
            gpu.memory_type.as_deref().unwrap_or("")
        );
        assert_eq!(classes(offer(&gpu.id, None, &[&text])), [Class::True], "{}: {text}", gpu.id);
    }
}
