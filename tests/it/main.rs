//! One integration binary: one link step on small machines.

// Helpers of tests may do what tests may (clippy.toml covers only the functions marked #[test]).
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod browser;
mod cli;
mod component;
mod conformance;
mod examples;
mod files;
mod journal;
mod kernels;
mod measuring;
mod offers;
mod planning;
mod process;
mod records;
mod report;
mod scenarios;
mod states;
mod storage;
mod tidy;
mod words;
mod workloads;
