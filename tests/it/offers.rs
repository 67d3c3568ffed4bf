//! Offers through the binary: checked before renting, and held against machines; their schema; names of models.

use std::path::Path;
use std::process::{Command, Output};

use gpu_assay::offer;
use gpu_assay::spec::{self, Resolution};
use serde_json::Value;

use crate::words::vocabulary;

fn gpu_assay(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-assay")).args(args).current_dir(folder).output().expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// Exit code and output of `offer check` on this text.
fn check(text: &str) -> (i32, String) {
    let here = folder();
    std::fs::write(here.path().join("offer.toml"), text).expect("writable");
    let output = gpu_assay(here.path(), &["offer", "check", "offer.toml"]);
    (
        output.status.code().expect("no signal"),
        format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr)),
    )
}

/// A p5.48xlarge as AWS sells it.
const P5: &str = r#"
provider = "AWS"
instance = "p5.48xlarge"

[gpu]
model = "H100 SXM5 80GB"
count = 8
memory = "80 GB"
link = "nvswitch"

[host]
vcpus = 192
ram = "2 TiB"

[storage]
size = "30.4 TB"
kind = "nvme"

[network]
rate = "3200 Gbps"

[[claim]]
text = "8x NVIDIA H100 80GB"
"#;

#[test]
fn exit_0_everything_is_as_the_instance_type_and_the_vendor_state_it() {
    let (code, text) = check(P5);
    assert_eq!(code, 0, "{text}");
    for words in ["host.vcpus = 192", "network.rate", "aws/p5.48xlarge", "8x NVIDIA H100 80GB", "0 false, 0 unknown"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn exit_1_what_contradicts_the_instance_type_the_offer_or_the_vendor() {
    for (what, from, to) in [
        ("another count", "count = 8", "count = 4"),
        ("another model", "H100 SXM5 80GB\"", "A100 SXM4 80GB\""),
        ("another size", "memory = \"80 GB\"", "memory = \"141 GB\""),
        ("other vCPUs", "vcpus = 192", "vcpus = 96"),
        ("other memory", "2 TiB", "1 TiB"),
        ("other disks", "30.4 TB", "60 TB"),
        ("another network", "3200 Gbps", "400 Gbps"),
        ("another link", "link = \"nvswitch\"", "link = \"xgmi\""),
        ("a claim of more GPUs", "8x NVIDIA H100", "16x NVIDIA H100"),
        ("a claim of another model", "8x NVIDIA H100 80GB", "8x NVIDIA H200"),
        ("a claim in Chinese", "8x NVIDIA H100 80GB", "16卡H100"),
        ("a claim of speed", "8x NVIDIA H100 80GB", "FP16 1979 TFLOPS"),
        ("an instance with four GPUs", "p5.48xlarge", "p4d.24xlarge"),
    ] {
        assert!(P5.contains(from), "{what}");
        let (code, text) = check(&P5.replace(from, to));
        assert_eq!(code, 1, "{what}: {text}");
    }
    // The line of what is contradicted is named.
    let (_, text) = check(&P5.replace("vcpus = 192", "vcpus = 96"));
    assert!(text.contains("offer.toml:12  host.vcpus = 96"), "{text}");
    assert!(text.contains("states 192 for aws/p5.48xlarge"), "{text}");
    // Eight of 80 GB, of a type that has four.
    let four = "provider = \"AWS\"\ninstance = \"g5.12xlarge\"\n[gpu]\nmodel = \"a10g\"\ncount = 8\n";
    assert_eq!(check(four).0, 1);
}

#[test]
fn exit_3_what_is_unknown() {
    for (what, text) in [
        ("an instance that is not in the table", P5.replace("p5.48xlarge", "p5.49xlarge")),
        ("a claim nobody can check", P5.replace("8x NVIDIA H100 80GB", "the best cloud")),
        ("a comparison", P5.replace("8x NVIDIA H100 80GB", "faster than an A100")),
        (
            "an ambiguous model",
            "provider = \"x\"\n[gpu]\nmodel = \"H100\"\n[[claim]]\ntext = \"3.35 TB/s\"\n".to_owned(),
        ),
        ("a model nobody knows", "provider = \"x\"\n[gpu]\nmodel = \"H1000\"\n".to_owned()),
        ("nothing to check", "provider = \"x\"\n".to_owned()),
        (
            "the table is not sure of the network",
            "provider = \"AWS\"\ninstance = \"p3.2xlarge\"\n[network]\nrate = \"1 Gbps\"\n".to_owned(),
        ),
    ] {
        let (code, shown) = check(&text);
        assert_eq!(code, 3, "{what}: {shown}");
    }
    let (_, text) = check(&P5.replace("p5.48xlarge", "p5.49xlarge"));
    assert!(text.contains("p5.49xlarge is not in the table of instance types; nearest: aws/p5.48xlarge"), "{text}");
    let (_, text) = check("provider = \"x\"\n[gpu]\nmodel = \"H100\"\n");
    assert!(text.contains("h100-sxm5-80gb, ") && text.contains("h100-pcie-80gb"), "{text}");
}

#[test]
fn exit_2_what_cannot_be_read_names_the_place_and_the_nearest_name() {
    for (from, to, words) in [
        ("vcpus = 192", "vcpu = 192", "did you mean \"vcpus\"?"),
        ("nvswitch", "nvswich", "did you mean \"nvswitch\"?"),
        ("2 TiB", "2 parsecs", "offer.toml:13"),
        ("3200 Gbps", "3200 GB", "not in B/s"),
        ("[storage]", "[stroage]", "did you mean \"storage\"?"),
    ] {
        let (code, text) = check(&P5.replace(from, to));
        assert_eq!(code, 2, "{to}: {text}");
        assert!(text.contains(words), "{to}: {text}");
    }
    let output = gpu_assay(folder().path(), &["offer", "check", "absent.toml"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_offer_of_every_instance_type_is_read_and_contradicts_nothing() {
    let (mut whole, mut around) = (0, 0);
    for instance in spec::InstanceTable::embedded().all() {
        if instance.gpu.is_none() || instance.count.is_none() {
            continue;
        }
        // A few through the binary, all through the parser would start it 200 times.
        if whole % 20 == 0 {
            let here = folder();
            let output = gpu_assay(here.path(), &["offer", "new", &instance.id]);
            assert!(output.status.success(), "{}", instance.id);
            let text = stdout(&output);
            let offer = offer::parse(&instance.id, &text, &vocabulary()).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(offer.count, instance.count);
            let expected = instance.vcpus.filter(|_| !instance.is_uncertain(spec::InstanceField::Vcpus));
            assert_eq!(offer.host.vcpus, expected, "{text}");
            assert_eq!(check(&text).0, 0, "{text}");
            around += usize::from(offer.network.is_some());
        }
        whole += 1;
    }
    assert!(whole > 190 && around > 3, "{whole} {around}");
}

// ---- on a machine ------------------------------------------------------------------------------

const SUITE: &str = include_str!("../fixtures/scenarios/suite.toml");

/// Verdict, status by requirement id, and codes of a record judged against an offer.
fn judged(here: &Path, offer: &str) -> (String, Value, Vec<String>) {
    std::fs::write(here.join("offer.toml"), offer).expect("writable");
    let output = gpu_assay(here, &["judge", "out", "--offer", "offer.toml", "--json"]);
    let assessment: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{e}: {}", String::from_utf8_lossy(&output.stderr));
    });
    let all = assessment["requirements"].as_array().expect("list").iter();
    let statuses = all.map(|r| (r["id"].as_str().expect("text").to_owned(), r["status"].clone())).collect();
    let codes = assessment["findings"].as_array().expect("list").iter();
    let codes = codes.map(|f| f["code"].as_str().expect("text").to_owned()).collect();
    (assessment["verdict"].as_str().expect("text").to_owned(), Value::Object(statuses), codes)
}

#[test]
fn a_simulated_machine_is_held_against_what_was_sold_around_its_gpus() {
    let here = folder();
    std::fs::write(here.path().join("suite.toml"), SUITE).expect("writable");
    let machine = "2xh100-sxm5-80gb+host:cpus=32,ram=245GiB,nvme=3.84TB";
    let args = ["run", "--simulate", machine, "--suite", "suite.toml", "--out", "out", "--quiet"];
    let output = gpu_assay(here.path(), &args);
    assert!(here.path().join("out/record.json").exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let sold = |vcpus: u32, ram: &str, size: &str, gpu: &str, claim: &str| {
        format!(
            "provider = \"x\"\n[gpu]\nmodel = \"h100-sxm5-80gb\"\ncount = 2\n{gpu}\n[host]\nvcpus = {vcpus}\nram = \"{ram}\"\n\
             [storage]\nsize = \"{size}\"\nkind = \"nvme\"\n[[claim]]\ntext = \"{claim}\"\n\
             [[guarantee]]\nmetric = \"gemm.throughput\"\nwhere = {{ type = \"fp16\" }}\nminimum = \"700 TFLOP/s\"\n\
             [[guarantee]]\nmetric = \"memory_bandwidth.rate\"\nwhere = {{ op = \"triad\" }}\nminimum = \"2.9 TB/s\"\n"
        )
    };
    let links = "link = \"nvlink\"\npcie = { generation = 5, lanes = 16 }";
    let two = "2x H100 80GB";
    for (offer, verdict, id, status, code) in [
        (sold(32, "256 GiB", "3.84 TB", links, two), "accepted", "cpus", "pass", None),
        (sold(64, "256 GiB", "3.84 TB", links, two), "not_accepted", "cpus", "fail", Some("GA-OFFER-01")),
        (sold(32, "512 GiB", "3.84 TB", links, two), "not_accepted", "ram", "fail", Some("GA-OFFER-02")),
        (sold(32, "256 GiB", "7.68 TB", links, two), "not_accepted", "storage-size", "fail", Some("GA-OFFER-03")),
        (
            sold(32, "256 GiB", "3.84 TB", "link = \"xgmi\"", two),
            "not_accepted",
            "peer-link/sim:0",
            "fail",
            Some("GA-OFFER-04"),
        ),
        (
            sold(32, "256 GiB", "3.84 TB", "pcie = { generation = 6 }", two),
            "not_accepted",
            "pcie/sim:1",
            "fail",
            Some("GA-OFFER-04"),
        ),
        (sold(32, "256 GiB", "3.84 TB", links, "4x H100 80GB"), "not_accepted", "count", "pass", Some("GA-OFFER-05")),
        (sold(32, "256 GiB", "3.84 TB", links, "faster than an A100"), "accepted", "cpus", "pass", None),
    ] {
        let (got, statuses, codes) = judged(here.path(), &offer);
        assert_eq!((got.as_str(), &statuses[id]), (verdict, &Value::from(status)), "{offer}\n{statuses:#}");
        let mut offers: Vec<&str> = codes.iter().filter(|c| c.starts_with("GA-OFFER")).map(String::as_str).collect();
        // One finding for each GPU.
        offers.dedup();
        assert_eq!(offers, code.into_iter().collect::<Vec<_>>(), "{offer}");
    }
    // The network is not seen: a reservation.
    let network = format!("{}[network]\nrate = \"100 Gbps\"\n", sold(32, "256 GiB", "3.84 TB", links, two));
    assert_eq!(judged(here.path(), &network).0, "accepted_with_reservations");
}

// ---- schema ------------------------------------------------------------------------------------

/// What of JSON Schema the generated schema uses; anything else is a mistake here.
fn violations(schema: &Value, root: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, wanted) in schema.as_object().expect("object") {
        match keyword.as_str() {
            "$ref" => {
                let path = wanted.as_str().expect("text").trim_start_matches('#');
                found.extend(violations(root.pointer(path).expect("defined"), root, value, at));
            }
            "type" => {
                let holds = match wanted.as_str().expect("one type") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    other => panic!("type {other}"),
                };
                found.extend((!holds).then(|| format!("{at}: not {wanted}")));
            }
            "properties" => {
                for (name, own) in wanted.as_object().expect("object") {
                    let inner = value.get(name).map(|v| violations(own, root, v, &format!("{at}.{name}")));
                    found.extend(inner.into_iter().flatten());
                }
            }
            "additionalProperties" if wanted == false => {
                let known = schema["properties"].as_object().expect("object");
                let unknown = value.as_object().into_iter().flat_map(|o| o.keys()).filter(|k| !known.contains_key(*k));
                found.extend(unknown.map(|k| format!("{at}: unknown {k}")));
            }
            "additionalProperties" => {
                let all = value.as_object().into_iter().flatten();
                found.extend(all.flat_map(|(k, v)| violations(wanted, root, v, &format!("{at}.{k}"))));
            }
            "required" => {
                let missing =
                    wanted.as_array().expect("list").iter().filter(|k| value.get(k.as_str().unwrap()).is_none());
                found.extend(missing.map(|k| format!("{at}: no {k}")));
            }
            "items" => {
                let all = value.as_array().into_iter().flatten().enumerate();
                found.extend(all.flat_map(|(i, v)| violations(wanted, root, v, &format!("{at}[{i}]"))));
            }
            "enum" => {
                let holds = wanted.as_array().expect("list").contains(value);
                found.extend((!holds).then(|| format!("{at}: {value} is none of {wanted}")));
            }
            "anyOf" => {
                let all = wanted.as_array().expect("list").iter();
                let holds = all.into_iter().any(|s| violations(s, root, value, at).is_empty());
                found.extend((!holds).then(|| format!("{at}: fits none of {}", wanted.as_array().unwrap().len())));
            }
            "minimum" => {
                let holds = value.as_f64().is_none_or(|v| v >= wanted.as_f64().unwrap());
                found.extend((!holds).then(|| format!("{at}: below {wanted}")));
            }
            "maximum" => {
                let holds = value.as_f64().is_none_or(|v| v <= wanted.as_f64().unwrap());
                found.extend((!holds).then(|| format!("{at}: above {wanted}")));
            }
            "pattern" => {
                let pattern = regex::Regex::new(wanted.as_str().unwrap()).expect("a pattern");
                let holds = value.as_str().is_none_or(|v| pattern.is_match(v));
                found.extend((!holds).then(|| format!("{at}: does not match {wanted}")));
            }
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => {}
            other => panic!("keyword {other} is not looked at"),
        }
    }
    found
}

fn toml_as_json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).expect("TOML")).expect("JSON")
}

#[test]
fn offers_are_valid_by_the_published_schema() {
    let output = gpu_assay(folder().path(), &["schema", "offer"]);
    assert!(output.status.success());
    let schema: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("examples/offer.toml")];
    files.extend(std::fs::read_dir(root.join("tests/fixtures/offers/valid")).unwrap().map(|e| e.unwrap().path()));
    assert!(files.len() >= 5);
    for file in &files {
        let value = toml_as_json(&std::fs::read_to_string(file).unwrap());
        assert_eq!(violations(&schema, &schema, &value, ""), Vec::<String>::new(), "{}", file.display());
    }
    // What the parser refuses for its shape, the schema refuses too.
    for name in [
        "unknown-key",
        "unknown-link",
        "unknown-market",
        "unknown-storage-kind",
        "unknown-host-key",
        "no-storage-size",
        "zero-vcpus",
        "zero-gpus",
        "too-many-lanes",
        "unknown-pcie-key",
        "condition-outside-where",
        "currency-sign",
    ] {
        let file = root.join(format!("tests/fixtures/offers/invalid/{name}.toml"));
        let value = toml_as_json(&std::fs::read_to_string(file).unwrap());
        assert!(!violations(&schema, &schema, &value, "").is_empty(), "{name}");
    }
}

// ---- names -------------------------------------------------------------------------------------

#[test]
fn models_are_known_by_id_marketing_and_driver_name() {
    for (written, id) in [
        ("a100-sxm4-80gb", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("A100 80GB SXM", "a100-sxm4-80gb"),
        ("a100 sxm4 80 GB", "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("H100 SXM5 80GB", "h100-sxm5-80gb"),
        ("H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", "h100-nvl-94gb"),
        ("H200 SXM 141GB", "h200-sxm-141gb"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("Tesla T4", "t4"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("RTX-4090", "rtx-4090"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI250X", "mi250x"),
    ] {
        let found: Vec<&str> = spec::table().fitting(written).iter().map(|g| g.id.as_str()).collect();
        assert_eq!(found, [id], "{written}");
    }
    for (written, candidates) in [
        ("H100", &["h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb"][..]),
        // The name that drivers give to one of them says no more than the family.
        ("NVIDIA H200", &["h200-sxm-141gb", "h200-nvl-141gb"]),
        ("A100 80GB", &["a100-sxm4-80gb", "a100-pcie-80gb"]),
        ("V100 SXM2", &["v100-sxm2-16gb", "v100-sxm2-32gb"]),
    ] {
        let Resolution::Several(found) = spec::table().resolve(written) else { panic!("{written} is one model") };
        for id in candidates {
            assert!(found.iter().any(|g| g.id == *id), "{written}: {id}");
        }
    }
    let Resolution::Unknown { nearest } = spec::table().resolve("h100-sxm5-80g") else { panic!("no such model") };
    assert!(nearest.contains(&"h100-sxm5-80gb".to_owned()), "{nearest:?}");
}
