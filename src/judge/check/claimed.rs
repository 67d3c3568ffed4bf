//! Claims that say what is there: another model, another count or less memory than claimed is not what was sold. Claims
//! about speed set no limit, and texts that compare or say more than what is there are left alone (see `claim::thing`).

use super::identity::{MEMORY_VISIBLE, counted, is_any_of};
use super::{Check, finding};
use crate::judge::claim::{Thing, thing};
use crate::judge::draft::{Draft, limit};
use crate::judge::facts::Facts;
use crate::judge::{BasisKind, Class, Finding, FixBy, Message, Requirement, Status};
use crate::offer::{Claim, Offer};
use crate::record::{DeviceId, DeviceInfo};
use crate::unit::{Quantity, Unit};

pub const CHECK: Check = Check {
    id: "claimed",
    summary: "model, count and memory that the offer's claims name against the devices that are there",
    requirements,
    findings,
};

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let Some(offer) = facts.offer else { return Vec::new() };
    let gpus: Vec<DeviceId> = facts.gpus().map(|g| g.id.clone()).collect();
    let mut drafts: Vec<Draft> = Vec::new();
    for claim in &offer.claims {
        let Some(thing) = thing(&claim.text, facts.table) else { continue };
        let mut draft = Draft::fact(id(claim), "identity", "claimed", &gpus, Class::Gate);
        draft.requirement.limit = limit(1.0, BasisKind::Identity, place(offer, claim));
        let (status, reason) = judge(facts, &thing);
        // Two claims of one line are one requirement: the worse of them.
        match drafts.iter_mut().find(|d| d.requirement.id == draft.requirement.id) {
            Some(same) if rank(status) > rank(same.requirement.status) => {
                (same.requirement.status, same.requirement.reason) = (status, reason);
            }
            Some(_) => {}
            None => drafts.push(draft.with(status, reason)),
        }
    }
    drafts
}

fn id(claim: &Claim) -> String {
    format!("claim-line-{}", claim.line)
}

fn place(offer: &Offer, claim: &Claim) -> String {
    format!("{}:{}", offer.source.name, claim.line)
}

fn rank(status: Status) -> u8 {
    match status {
        Status::Fail => 3,
        Status::Inconclusive | Status::NotTested => 2,
        _ => 1,
    }
}

/// The worst of what the claim says about count and about each GPU.
fn judge(facts: &Facts<'_>, thing: &Thing<'_>) -> (Status, Option<Message>) {
    if facts.gpus().next().is_none() {
        return (Status::NotTested, Some(Message::new("reason.no_gpu")));
    }
    let count = thing.count.map(|n| counted(facts, u64::from(n)));
    let each = facts.gpus().flat_map(|gpu| [model(facts, thing, gpu), memory(facts, thing, gpu)]).flatten();
    let all = count.into_iter().chain(each);
    // The first of the worst: it names what to look at.
    all.reduce(|worst, next| if rank(next.0) > rank(worst.0) { next } else { worst }).unwrap_or((Status::Pass, None))
}

fn model(facts: &Facts<'_>, thing: &Thing<'_>, gpu: &DeviceInfo) -> Option<(Status, Option<Message>)> {
    let reason = |id: &str| Some(Message::new(id).with("sold", thing.name.as_str()).with("found", gpu.name.as_str()));
    (!thing.models.is_empty()).then(|| match is_any_of(facts, gpu, &thing.models) {
        Some(true) => (Status::Pass, None),
        Some(false) => (Status::Fail, reason("reason.other_model")),
        None => (Status::Inconclusive, reason("reason.model_unclear")),
    })
}

fn memory(facts: &Facts<'_>, thing: &Thing<'_>, gpu: &DeviceInfo) -> Option<(Status, Option<Message>)> {
    let claimed = thing.size?;
    // A package of several devices is sold with the memory of all of them.
    let per_device = facts.spec(gpu).map_or(1.0, |s| f64::from(s.devices_per_package.max(1)));
    let bytes = |value: f64| Quantity { value, unit: Unit::Byte };
    let reason = Message::new("reason.memory").with("found", bytes(gpu.memory.0)).with("sold", bytes(claimed.0));
    Some(match gpu.memory.0 * per_device / claimed.0 {
        r if r >= MEMORY_VISIBLE => (Status::Pass, None),
        r if r > 0.0 => (Status::Fail, Some(reason)),
        _ => (Status::Inconclusive, Some(reason)),
    })
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let Some(offer) = facts.offer else { return Vec::new() };
    let mut found: Vec<Finding> = Vec::new();
    for claim in &offer.claims {
        let is_short = |r: &&Requirement| r.id == id(claim) && r.metric == "claimed" && r.status == Status::Fail;
        let Some(requirement) = requirements.iter().find(is_short) else { continue };
        if found.iter().any(|f| f.requirements.contains(&requirement.id)) {
            continue;
        }
        let reason = requirement.reason.clone().unwrap_or_else(|| Message::new("reason.no_evidence"));
        let f = finding("GA-OFFER-05", "claimed", &requirement.devices, FixBy::Provider)
            .arg("claim", claim.text.as_str())
            .arg("place", place(offer, claim))
            .arg("reason", reason)
            .see("/inventory/devices", "device", "inventory")
            .explains(requirements, |r| r.id == requirement.id);
        found.push(f);
    }
    found
}
