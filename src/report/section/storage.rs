//! Storage: rates, operations per second and latency percentiles.

use super::{Section, domain};

/// The section.
pub const SECTION: Section =
    Section { id: "storage", template: domain::TEMPLATE, listed: true, build: |page| domain::build(page, "storage") };
