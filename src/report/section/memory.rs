//! Device or host memory: rates by operation, sweep over sizes, latency.

use super::{Section, domain};

/// The section.
pub const SECTION: Section =
    Section { id: "memory", template: domain::TEMPLATE, listed: true, build: |page| domain::build(page, "memory") };
