//! Was the speed of each GPU compared with anything? One that was not is never accepted.

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::requirements::fits;
use crate::judge::{Class, Finding, FixBy, Message, Requirement, Status};
use crate::record::{DeviceId, DeviceInfo};
use crate::suite::LimitRule;

pub const CHECK: Check = Check {
    id: "reference",
    summary: "every GPU's compute and memory speed is compared with a guarantee or a band",
    requirements,
    findings,
};

/// True if a guarantee of the offer or a band applies to a series of the domain on this GPU. A guarantee about a case
/// that was not measured counts: it is a gate of its own, and not tested.
fn has_reference(facts: &Facts<'_>, gpu: &DeviceInfo, domain: &str) -> bool {
    let of_device = |c: &&crate::judge::facts::CaseFacts<'_>| {
        c.devices == std::slice::from_ref(&gpu.id) && crate::judge::facts::domain(c.benchmark) == domain
    };
    let whole = if facts.slice(gpu).is_none() { gpu.spec.as_deref() } else { None };
    let bands = facts.table.bands().of_gpu(whole.unwrap_or_default());
    let demands_band = facts.suite.demands.iter().any(|d| d.limit == LimitRule::Band);
    let guarantees = facts.offer.map_or(&[][..], |o| &o.guarantees);
    facts.cases.iter().filter(of_device).any(|case| {
        let is_about = |metric: &str| metric.split('.').next() == Some(case.benchmark);
        if case.measurement().is_none() {
            return guarantees.iter().any(|g| is_about(&g.metric) && facts.may_match(case, &g.filter));
        }
        case.measurement().map_or(&[][..], |m| &m.series).iter().any(|s| {
            let promised = guarantees
                .iter()
                .any(|g| g.metric == s.metric.0 && g.value.unit == s.unit && case.matches(&g.filter, &s.labels));
            let known = demands_band && bands.iter().any(|b| b.metric == s.metric.0 && fits(b, case, s));
            promised || known
        })
    })
}

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for gpu in facts.gpus() {
        for domain in ["compute", "memory"] {
            if !has_reference(facts, gpu, domain) {
                let id = format!("reference-{domain}/{}", gpu.id);
                let draft = Draft::fact(id, domain, "reference", std::slice::from_ref(&gpu.id), Class::Gate);
                drafts.push(draft.open(Message::new("reason.no_reference")));
            }
        }
    }
    drafts
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let open: Vec<&Requirement> =
        requirements.iter().filter(|r| r.metric == "reference" && r.status == Status::Inconclusive).collect();
    let mut devices: Vec<DeviceId> = open.iter().flat_map(|r| r.devices.clone()).collect();
    devices.sort();
    devices.dedup();
    if devices.is_empty() {
        return Vec::new();
    }
    let model = devices.first().and_then(|d| facts.device(d)).map_or("–", |d| d.name.as_str());
    let f = finding("GA-REF-01", "no_reference", &devices, FixBy::Either)
        .arg("model", model)
        .see("/inventory/devices", "device", "inventory")
        .explains(requirements, |r| r.metric == "reference");
    vec![f]
}
