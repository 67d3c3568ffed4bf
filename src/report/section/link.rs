//! Links between host and device, and between devices.

use super::{Section, domain};

/// The section.
pub const SECTION: Section =
    Section { id: "link", template: domain::TEMPLATE, listed: true, build: |page| domain::build(page, "link") };
