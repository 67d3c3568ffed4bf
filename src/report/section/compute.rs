//! Arithmetic: rates by type against the ceiling and figures they are set against.

use super::{Section, domain};

/// The section.
pub const SECTION: Section =
    Section { id: "compute", template: domain::TEMPLATE, listed: true, build: |page| domain::build(page, "compute") };
