//! The automation examples, each checked by its own tool.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::component;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

fn tool(path: &str) -> Option<PathBuf> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools").join(path);
    tool.exists().then_some(tool)
}

#[test]
fn kubernetes_job_is_valid() {
    let Some(validate) = component::found("kubernetes-validate", tool("venv/bin/kubernetes-validate")) else { return };
    let output = Command::new(validate).arg("--strict").arg(example("kubernetes-job.yaml")).output().expect("runs");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn kubernetes_validation_can_fail() {
    let Some(validate) = component::found("kubernetes-validate", tool("venv/bin/kubernetes-validate")) else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    let broken = folder.path().join("job.yaml");
    let text = std::fs::read_to_string(example("kubernetes-job.yaml")).expect("example");
    std::fs::write(&broken, text.replace("backoffLimit", "backofLimit")).expect("writable");
    assert!(!Command::new(validate).arg("--strict").arg(broken).output().expect("runs").status.success());
}

/// The Job must not retry a verdict: every code that is one is in the policy that fails at once.
#[test]
fn kubernetes_job_never_retries_a_verdict() {
    let text = std::fs::read_to_string(example("kubernetes-job.yaml")).expect("example");
    assert!(text.contains("values: [1, 2, 3, 4]") && text.contains("restartPolicy: Never"));
}

#[test]
fn cloud_init_is_valid() {
    let Some(root) = component::found("cloud-init", tool("cloud-init/usr/lib/python3/dist-packages")) else { return };
    let output = cloud_init_schema(&root, &example("cloud-init.yaml"));
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn cloud_init_validation_can_fail() {
    let Some(root) = component::found("cloud-init", tool("cloud-init/usr/lib/python3/dist-packages")) else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    let broken = folder.path().join("broken.yaml");
    std::fs::write(&broken, "#cloud-config\nruncmd: 3\n").expect("writable");
    assert!(!cloud_init_schema(&root, &broken).status.success());
}

fn cloud_init_schema(root: &Path, file: &Path) -> std::process::Output {
    Command::new("/usr/bin/python3")
        .env("PYTHONPATH", root)
        .args(["-m", "cloudinit.cmd.main", "schema", "--config-file"])
        .arg(file)
        .output()
        .expect("python3 runs")
}

/// The unit in the file and the one inside the cloud-init example, with a program that exists in place of ours.
#[test]
fn systemd_units_are_valid() {
    let Some(analyze) = component::found("systemd-analyze", component::on_path("systemd-analyze")) else { return };
    let cloud_init = std::fs::read_to_string(example("cloud-init.yaml")).expect("example");
    let inside: Vec<&str> = cloud_init
        .lines()
        .skip_while(|l| !l.trim().starts_with("[Unit]"))
        .take_while(|l| l.starts_with("      ") || l.trim().is_empty())
        .map(str::trim)
        .collect();
    let unit = std::fs::read_to_string(example("gpu-assay.service")).expect("example");
    for text in [unit, inside.join("\n")] {
        let verify = |text: &str| {
            let folder = tempfile::tempdir().expect("temporary folder");
            let file = folder.path().join("gpu-assay-example.service");
            std::fs::write(&file, text).expect("writable");
            Command::new(&analyze).args(["verify", "--man=no"]).arg(&file).output().expect("runs")
        };
        let complaints = |o: &std::process::Output| {
            let text = String::from_utf8_lossy(&o.stderr).into_owned();
            text.lines().filter(|l| l.contains("gpu-assay-example")).map(str::to_owned).collect::<Vec<_>>()
        };
        let installed = text.replace("/usr/local/bin/gpu-assay", "/bin/true");
        assert_eq!(complaints(&verify(&installed)), Vec::<String>::new());
        assert_ne!(complaints(&verify(&installed.replace("Type=oneshot", "Type=oncely"))), Vec::<String>::new());
    }
}
