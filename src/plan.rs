//! Suite × Inventory → Plan: what will be done, in which order, within the promised time.

use crate::unit::Seconds;

/// What the user asked for beside the suite. The devices are those of `Inventory::selected`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanOptions {
    /// Time allowed for the whole run; the suite's own budget if not given.
    pub budget: Option<Seconds>,
    /// Only cases whose id or benchmark matches one of these (`*` and `?`); empty: all.
    pub only: Vec<String>,
    /// No case whose id or benchmark matches one of these.
    pub skip: Vec<String>,
}
