//! Interference: what a neighbour takes from a victim, as a matrix where the cases form one.

use super::{Section, domain};
use crate::report::figure::{figures, word_matrices};

/// The section.
pub const SECTION: Section = Section {
    id: "interference",
    template: domain::TEMPLATE,
    listed: true,
    build: |page| {
        let belongs = |r: &crate::report::reading::Reading| domain::of(r.benchmark()) == "interference";
        let mut all = word_matrices(page, belongs);
        all.extend(figures(page, belongs));
        domain::finish(page, "interference", all)
    },
};
