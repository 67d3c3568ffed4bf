//! The binary as its users meet it: exit codes, bad input, outputs.

use std::path::Path;
use std::process::{Command, Output};

/// The binary, in a folder of its own.
fn gpu_assay(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-assay")).args(args).current_dir(folder).output().expect("the binary runs")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("not killed by a signal")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A suite that takes no time: one verified GEMM and one memory case on whatever is chosen.
const TINY: &str = r#"
name = "tiny"
version = 1
title = "One case for compute, one for memory"
budget = "60 s"
soak = "0.2 s"
rounds = { min = 3, max = 3 }

[[run]]
benchmark = "gemm"
params = { type = ["fp32"], n = [256] }
block = "20 ms"
precision = "5 %"
value = 2

[[run]]
benchmark = "memory_bandwidth"
params = { op = ["triad"], size = ["4 MiB"] }
block = "20 ms"
precision = "5 %"
value = 1

[[demand]]
id = "compute-correct"
benchmark = "gemm"
limit = "correct"
class = "gate"
why = "Wrong results have no speed."

[[demand]]
id = "memory-correct"
benchmark = "memory_bandwidth"
limit = "correct"
class = "gate"
why = "Wrong results have no speed."
"#;

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writable");
    path.to_string_lossy().into_owned()
}

#[test]
fn exit_0_host_run_is_accepted_and_writes_its_files() {
    let here = folder();
    let suite = write(here.path(), "tiny.toml", TINY);
    let output = gpu_assay(here.path(), &["run", "--device", "host", "--suite", &suite, "--out", "out"]);
    for name in ["record.json", "assessment.json", "report.html", "journal.ndjson"] {
        assert!(here.path().join("out").join(name).exists(), "{name}");
    }
    let assessment: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(here.path().join("out/assessment.json")).expect("written"))
            .expect("JSON");
    assert_eq!(assessment["simulated"], false);
    // Other tests load this machine at the same time. A run that notices them is invalid and inconclusive, and
    // saying so is right; nothing else may keep it from being accepted.
    let reasons = assessment["validity_reasons"].as_array().expect("list");
    let disturbed = reasons.iter().any(|r| r["id"] == "judge.invalid.foreign");
    let requirements = assessment["requirements"].as_array().expect("list");
    let open: Vec<_> =
        requirements.iter().filter(|r| r["status"] != "pass" && r["status"] != "not_applicable").collect();
    // A hypervisor that gave the processor to somebody else is a reservation.
    let stolen = !open.is_empty() && open.iter().all(|r| r["id"] == "steal");
    let expected = match (disturbed, stolen) {
        (true, _) => (3, "inconclusive"),
        (false, true) => (0, "accepted_with_reservations"),
        (false, false) => (0, "accepted"),
    };
    let verdict = assessment["verdict"].as_str().expect("word");
    assert_eq!((code(&output), verdict), expected, "{reasons:#?} {open:#?} {}", assessment["findings"]);
}

#[test]
fn exit_1_a_guarantee_that_is_not_met() {
    let here = folder();
    let suite = write(here.path(), "tiny.toml", TINY);
    let offer = write(
        here.path(),
        "offer.toml",
        "provider = \"example\"\n[gpu]\nmodel = \"h100-sxm5-80gb\"\ncount = 1\n[[guarantee]]\nmetric = \"gemm.throughput\"\nwhere = { type = \"fp32\" }\nminimum = \"900 TFLOP/s\"\n",
    );
    let args = ["run", "--simulate", "1xh100-sxm5-80gb", "--suite", &suite, "--offer", &offer, "--out", "out"];
    let output = gpu_assay(here.path(), &args);
    assert_eq!(code(&output), 1, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("SIMULATED"), "{}", stdout(&output));
}

#[test]
fn exit_2_usage_errors_name_the_place() {
    let here = folder();
    let broken = write(here.path(), "broken.toml", &TINY.replace("\"gemm\"\nparams", "\"gem\"\nparams"));
    for (args, needle) in [
        (vec!["run", "--suite", &broken], "gemm"),
        (vec!["run", "--suite", "quik"], "quick"),
        (vec!["run", "--suite", "absent.toml"], "absent.toml"),
        (vec!["run", "--budget", "soon"], "soon"),
        (vec!["run", "--simulate", "1xh100-sxm5-8gb"], "h100-sxm5-80gb"),
        (vec!["run", "--offer", "absent.toml"], "absent.toml"),
        (vec!["run", "--device", "gpuu"], "gpuu"),
        (vec!["judge", "absent.json"], "absent.json"),
        (vec!["report", "."], "record.json"),
        (vec!["spec", "show", "h1000"], "h100"),
        (vec!["frobnicate"], "frobnicate"),
    ] {
        let output = gpu_assay(here.path(), &args);
        assert_eq!(code(&output), 2, "{args:?}: {}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains(needle), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn exit_3_a_gpu_that_was_compared_with_nothing() {
    let here = folder();
    let suite = write(here.path(), "tiny.toml", TINY);
    let output = gpu_assay(here.path(), &["run", "--simulate", "1xh100-sxm5-80gb", "--suite", &suite, "--out", "out"]);
    assert_eq!(code(&output), 3, "{}{}", stdout(&output), stderr(&output));
}

/// CI has no GPU; where there is one this test has nothing to say.
#[test]
fn exit_4_no_gpu() {
    let here = folder();
    let devices = gpu_assay(here.path(), &["devices", "--json"]);
    let inventory: serde_json::Value = serde_json::from_slice(&devices.stdout).expect("JSON");
    let has_gpu = inventory["devices"].as_array().is_some_and(|d| d.iter().any(|d| d["kind"] == "gpu"));
    if has_gpu {
        return;
    }
    let output = gpu_assay(here.path(), &["run"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("GPU"), "{}", stderr(&output));
    assert!(!here.path().join("runs").exists(), "nothing was measured, nothing is written");
    let offer =
        write(here.path(), "offer.toml", "provider = \"example\"\n[gpu]\nmodel = \"h100-sxm5-80gb\"\ncount = 8\n");
    for args in [vec!["run", "--offer", &offer], vec!["run", "--offer", &offer, "--device", "host"]] {
        assert_eq!(code(&gpu_assay(here.path(), &args)), 4, "{args:?}");
    }
}

/// A supervisor that cannot start its children, for want of file descriptors, is broken and says so.
#[test]
fn exit_70_internal_error() {
    let script = format!("ulimit -n 4; exec {} devices", env!("CARGO_BIN_EXE_gpu-assay"));
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert_eq!(code(&output), 70, "{}", stderr(&output));
}

#[test]
fn exit_73_output_folder_that_cannot_be_created() {
    let here = folder();
    let suite = write(here.path(), "tiny.toml", TINY);
    let blocker = write(here.path(), "file", "");
    for out in [format!("{blocker}/out"), "/proc/self/out".to_owned()] {
        let output = gpu_assay(here.path(), &["run", "--device", "host", "--suite", &suite, "--out", &out]);
        assert_eq!(code(&output), 73, "{}", stderr(&output));
        assert!(stderr(&output).contains("--out"), "{}", stderr(&output));
    }
    // A folder that holds a run is never overwritten.
    std::fs::create_dir(here.path().join("old")).expect("creatable");
    write(&here.path().join("old"), "record.json", "kept");
    let output = gpu_assay(here.path(), &["run", "--device", "host", "--suite", &suite, "--out", "old"]);
    assert_eq!(code(&output), 73);
    assert_eq!(std::fs::read_to_string(here.path().join("old/record.json")).expect("still there"), "kept");
}

/// A file size limit stands in for a full disk: the write fails in the same place, without root.
#[test]
fn exit_74_output_that_cannot_be_written() {
    let here = folder();
    let suite = write(here.path(), "tiny.toml", TINY);
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} run --device host --suite {suite} --out out",
        env!("CARGO_BIN_EXE_gpu-assay")
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(here.path()).output().expect("bash");
    assert_eq!(code(&output), 74, "{}", stderr(&output));
    assert!(!stderr(&output).contains("Measured"), "found before measuring: {}", stderr(&output));
}

#[test]
fn help_man_and_readme_agree_on_exit_codes() {
    let here = folder();
    let help = stdout(&gpu_assay(here.path(), &["--help"]));
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("README");
    for (exit, _) in gpu_assay::exit::Exit::ALL {
        let number = exit.code().to_string();
        assert!(help.contains(&number), "--help lacks {number}");
        assert!(readme.contains(&number), "README lacks {number}");
    }
    assert!(stdout(&gpu_assay(here.path(), &["man"])).starts_with(".ie"));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let script = format!("{} list gpus | head -1; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_gpu-assay"));
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert!(stdout(&output).trim_end().ends_with('0'), "{}", stdout(&output));
}

#[test]
fn every_registered_id_can_be_explained() {
    let here = folder();
    for b in gpu_assay::benchmark::ALL {
        let meta = b.meta();
        for id in std::iter::once(meta.id).chain(meta.metrics.iter().map(|m| m.id)) {
            let output = gpu_assay(here.path(), &["explain", id]);
            assert_eq!(code(&output), 0, "{id}: {}", stderr(&output));
            assert!(stdout(&output).len() > 200, "{id} says too little");
        }
    }
    assert_eq!(code(&gpu_assay(here.path(), &["explain", "nonsense"])), 2);
}

#[test]
fn malformed_records_are_refused_with_the_place() {
    let here = folder();
    let deep = "[".repeat(100_000);
    for (name, text) in
        [("empty.json", ""), ("half.json", "{\"format\": 1,"), ("deep.json", deep.as_str()), ("list.json", "[]")]
    {
        let path = write(here.path(), name, text);
        for command in ["judge", "report"] {
            let output = gpu_assay(here.path(), &[command, &path]);
            assert_eq!(code(&output), 2, "{command} {name}: {}", stderr(&output));
            assert!(stderr(&output).contains(name), "{}", stderr(&output));
        }
    }
    std::fs::write(here.path().join("binary.json"), [0xff, 0xfe, 0x00]).expect("writable");
    assert_eq!(code(&gpu_assay(here.path(), &["judge", "binary.json"])), 2);
}

#[test]
fn dry_run_measures_and_writes_nothing() {
    let here = folder();
    let output = gpu_assay(here.path(), &["run", "--device", "host", "--dry-run"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("gemm["), "{}", stdout(&output));
    assert_eq!(std::fs::read_dir(here.path()).expect("readable").count(), 0);
}

#[test]
fn the_self_test_catches_every_fault() {
    let folder = folder();
    let output = gpu_assay(folder.path(), &["doctor", "--self-test", "--json"]);
    let lines: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("one document");
    let text = |line: &serde_json::Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let found = |what: &str| lines.iter().filter(|l| text(l, "what").starts_with(what)).collect::<Vec<_>>();
    for what in ["wrong element fp64", "wrong element fp32", "wrong element int8", "truncated copy"] {
        assert!(found(what).iter().all(|l| text(l, "detail").starts_with("caught")), "{what}: {lines:#?}");
        assert_eq!(found(what).len(), 1, "{what}");
    }
    let disks = found("lying disk");
    assert!(disks.len() == 2 && disks.iter().all(|l| text(l, "detail").starts_with("caught")), "{disks:#?}");
    // Whether 10 % more work shows depends on what else this machine does; that it was tried does not.
    let slow = text(found("slow kernel")[0], "detail");
    assert!(slow.contains("slower by 10.0 % more work"), "{slow}");
    assert_eq!(code(&output), if slow.starts_with("caught") { 0 } else { 3 }, "{lines:#?}");
}

#[test]
fn every_load_is_measured_beside_every_load() {
    let here = folder();
    let loads = r#"["compute", "memory", "cache", "transfer"]"#;
    let suite = format!(
        "name = \"pairs\"\nversion = 1\ntitle = \"Pairs\"\nbudget = \"110 s\"\nsoak = \"1 s\"\n\
         rounds = {{ min = 3, max = 3 }}\n[[run]]\nbenchmark = \"interference\"\n\
         params = {{ victim = {loads}, aggressor = {loads} }}\nblock = \"50 ms\"\nprecision = \"5 %\"\nvalue = 1\n\
         [[demand]]\nid = \"complete\"\nbenchmark = \"interference\"\nlimit = \"complete\"\n\
         class = \"gate\"\nwhy = \"Each pair.\"\n"
    );
    let suite = write(here.path(), "pairs.toml", &suite);
    let args = ["run", "--simulate", "1xh100-sxm5-80gb", "--suite", &suite, "--out", "out"];
    let output = gpu_assay(here.path(), &args);
    let text = std::fs::read_to_string(here.path().join("out/record.json")).expect("written");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let results = record["results"].as_array().expect("list");
    assert_eq!(results.len(), 16);
    for result in results {
        let id = result["id"].as_str().expect("id");
        let series = result["outcome"]["measured"]["series"].as_array().unwrap_or_else(|| panic!("{result}"));
        let blocks = series[0]["blocks"].as_array().expect("blocks");
        let slowdown = blocks.iter().map(|b| b["value"].as_f64().expect("number")).sum::<f64>() / blocks.len() as f64;
        // Like competes with like for the same resource; unlike loads hardly meet on this simulated GPU.
        let load = |role: &str| id.split(&format!("{role}=")).nth(1).and_then(|r| r.split([',', ']']).next());
        let competes = load("victim") == load("aggressor");
        assert_eq!(slowdown > 1.5, competes, "{id}: {slowdown}");
    }
    assert!(stderr(&output).contains("(16/16)") && !stderr(&output).contains("(17/16)"), "{}", stderr(&output));
}

#[test]
fn a_record_that_contradicts_itself_is_an_input_error() {
    let here = folder();
    let suite = write(here.path(), "tiny.toml", TINY);
    gpu_assay(here.path(), &["run", "--simulate", "2xh100-sxm5-80gb", "--suite", &suite, "--out", "out"]);
    let text = std::fs::read_to_string(here.path().join("out/record.json")).expect("written");
    let sound: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    type Edit = fn(&mut serde_json::Value);
    let edits: [(Edit, &str); 5] = [
        (|r| r["results"] = serde_json::json!([r["results"][0], r["results"][0]]), "results are not those of its plan"),
        (|r| r["plan"]["cases"][1] = r["plan"]["cases"][0].clone(), "occurs twice"),
        (|r| r["inventory"]["devices"][1] = r["inventory"]["devices"][0].clone(), "occurs twice"),
        (|r| drop(r["inventory"]["devices"].as_array_mut().expect("list").pop()), "not among the devices"),
        (|r| r["results"] = serde_json::json!([]), "results are not those of its plan"),
    ];
    for (edit, needle) in edits {
        let mut record = sound.clone();
        edit(&mut record);
        let path = write(here.path(), "edited.json", &record.to_string());
        let output = gpu_assay(here.path(), &["judge", &path]);
        assert_eq!(code(&output), 2, "{needle}");
        assert!(stderr(&output).contains(needle), "{needle}: {}", stderr(&output));
    }
    // The mark of a simulation cannot be taken away.
    let mut record = sound;
    record["run"]["simulated"] = false.into();
    record["inventory"]["devices"].as_array_mut().expect("list").iter_mut().for_each(|d| d["simulated"] = false.into());
    let path = write(here.path(), "unmarked.json", &record.to_string());
    assert!(stdout(&gpu_assay(here.path(), &["judge", &path])).contains("SIMULATED"));
}
