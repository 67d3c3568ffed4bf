//! Interference: what a neighbour takes from a victim, as a matrix where the cases form one.

use super::{Section, domain};
use crate::report::figure::word_matrices;

/// The section.
pub const SECTION: Section = Section {
    id: "interference",
    template: domain::TEMPLATE,
    listed: true,
    build: |page| {
        let belongs = |r: &crate::report::reading::Reading| domain::of(r.benchmark()) == "interference";
        let figures = word_matrices(page, belongs);
        domain::finish(page, "interference", figures)
    },
};
