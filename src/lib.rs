//! gpu-assay: is this rented GPU instance what was sold, and can I prove it?
//!
//! One straight line of saveable values:
//!
//! ```text
//! discover ─► Inventory ─┐
//! suites/*.toml ─► Suite ─┼─► plan ─► Plan ─► measure ─► Record ─► judge ─► Assessment ─► report
//! offer.toml ─► Offer ────┘                     │ Events ─► observers
//! ```
//!
//! Measuring knows no thresholds; judging touches no device and no clock; reporting decides nothing.
//! The words used here are those of `CONTRIBUTING.md`; the dependency rule between the modules is
//! enforced by `tests/it/tidy.rs`.

pub mod backend;
pub mod benchmark;
pub mod cli;
pub mod config;
pub mod discover;
pub mod event;
pub mod exit;
pub mod judge;
pub mod kernel;
pub mod measure;
pub mod offer;
pub mod plan;
pub mod record;
pub mod report;
pub mod spec;
pub mod stats;
pub mod suite;
pub mod unit;
