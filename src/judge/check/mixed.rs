//! Different GPUs in one machine.

use std::collections::BTreeSet;

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::requirements::is_identical;
use crate::judge::{Class, Finding, FixBy, Message, Requirement, Status};
use crate::record::DeviceId;

pub const CHECK: Check =
    Check { id: "mixed", summary: "all GPUs of the machine are of one model and memory size", requirements, findings };

fn ids(facts: &Facts<'_>) -> Vec<DeviceId> {
    facts.gpus().map(|g| g.id.clone()).collect()
}

/// True if two selected GPUs of one backend differ.
fn differ(facts: &Facts<'_>) -> bool {
    let gpus: Vec<_> = facts.gpus().collect();
    gpus.iter()
        .enumerate()
        .any(|(i, a)| gpus[i + 1..].iter().any(|b| a.id.backend == b.id.backend && !is_identical(a, b)))
}

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let ids = ids(facts);
    if ids.len() < 2 {
        return Vec::new();
    }
    let draft = Draft::fact("uniform".to_owned(), "identity", "uniform", &ids, Class::Graded);
    vec![match differ(facts) {
        true => draft.with(Status::Fail, Some(Message::new("reason.mixed"))),
        false => draft.with(Status::Pass, None),
    }]
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    if !differ(facts) {
        return Vec::new();
    }
    let kinds: BTreeSet<String> =
        facts.gpus().map(|g| format!("{} ({})", g.name, crate::unit::Bytes(g.memory.0))).collect();
    let text = kinds.into_iter().collect::<Vec<_>>().join(", ");
    let f = finding("GA-ID-03", "mixed", &ids(facts), FixBy::Provider)
        .arg("kinds", text)
        .see("/inventory/devices", "device", "inventory")
        .explains(requirements, |r| r.metric == "uniform" || r.metric == "model");
    vec![f]
}
