//! Components that tests use and that a machine may lack.

/// Says that a test was skipped because `component` is not there; fails instead where
/// `GPU_ASSAY_REQUIRE_COMPONENTS=1` promises that all are installed.
pub fn missing(component: &str) {
    eprintln!("skipped: needs {component}");
    let required = std::env::var("GPU_ASSAY_REQUIRE_COMPONENTS").is_ok_and(|v| v == "1");
    assert!(!required, "{component} is required (GPU_ASSAY_REQUIRE_COMPONENTS=1) and was not found");
}
