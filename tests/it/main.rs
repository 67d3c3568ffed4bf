//! One integration binary: one link step on small machines.

mod component;
mod conformance;
mod files;
mod records;
mod report;
mod words;
mod workloads;
