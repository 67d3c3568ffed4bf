//! Real components that tests use where they are installed. Absent, a test says so and passes;
//! `scripts/test` sets `GPU_ASSAY_REQUIRE_COMPONENTS=1`, and absence is then a failure.

use std::path::PathBuf;

/// Says that a test was skipped because `component` is not there; fails where all are required.
pub fn missing(component: &str) {
    eprintln!("skipped: needs {component}");
    let required = std::env::var("GPU_ASSAY_REQUIRE_COMPONENTS").is_ok_and(|v| v == "1");
    assert!(!required, "{component} is required (GPU_ASSAY_REQUIRE_COMPONENTS=1): scripts/test installs it");
}

/// `value` if the component is there; otherwise says that the test is skipped.
pub fn found<T>(component: &str, value: Option<T>) -> Option<T> {
    if value.is_none() {
        missing(component);
    }
    value
}

/// A program on the PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|p| p.is_file())
}
