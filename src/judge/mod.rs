//! Judging: pure functions from a record, its suite, an offer and the spec table to an assessment. No
//! device, no clock, no prose: message ids with typed arguments.

mod assessment;

pub use assessment::{
    ASSESSMENT_FORMAT, Argument, Assessment, Basis, BasisKind, Class, Estimate, Evidence, Finding, FixBy, Limit,
    Message, NotTested, Requirement, Share, Status, Validity, Verdict,
};
