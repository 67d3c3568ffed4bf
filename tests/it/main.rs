//! One integration binary: one link step on small machines.

mod files;
mod words;
