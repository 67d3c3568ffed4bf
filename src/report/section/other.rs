//! Measured benchmarks that no other section is for: a new benchmark is never left out of the report.

use super::{Section, domain};

/// The section.
pub const SECTION: Section =
    Section { id: "other", template: domain::TEMPLATE, listed: true, build: |page| domain::build(page, "other") };
