//! A part of a GPU where a whole one was sold.

use super::{Check, finding};
use crate::judge::draft::Draft;
use crate::judge::facts::Facts;
use crate::judge::{Class, Finding, FixBy, Message, Requirement, Status};
use crate::record::DeviceInfo;
use crate::spec::{Slice, SliceKind};

pub const CHECK: Check = Check {
    id: "slice",
    summary: "a MIG instance or vGPU is not taken for the whole GPU that was sold",
    requirements,
    findings,
};

/// True if the offer names a model and says nothing of a slice.
fn is_sold_whole(facts: &Facts<'_>) -> bool {
    facts.offer.and_then(|o| o.model.as_deref()).is_some_and(|model| Slice::of_name(model).is_none())
}

fn slices<'a>(facts: &Facts<'a>) -> Vec<(&'a DeviceInfo, Slice)> {
    facts.gpus().filter_map(|gpu| Some((gpu, facts.slice(gpu)?))).collect()
}

fn requirements(facts: &Facts<'_>) -> Vec<Draft> {
    if !is_sold_whole(facts) {
        return Vec::new();
    }
    let draft = |(gpu, slice): (&DeviceInfo, Slice)| {
        let ids = std::slice::from_ref(&gpu.id);
        let reason = Message::new("reason.slice").with("profile", slice.profile);
        Draft::fact(format!("whole/{}", gpu.id), "identity", "whole", ids, Class::Gate).with(Status::Fail, Some(reason))
    };
    slices(facts).into_iter().map(draft).collect()
}

fn findings(facts: &Facts<'_>, requirements: &[Requirement]) -> Vec<Finding> {
    let whole = is_sold_whole(facts);
    let one = |(gpu, slice): (&DeviceInfo, Slice)| {
        let ids = std::slice::from_ref(&gpu.id);
        let kind = if slice.kind == SliceKind::Mig { "MIG" } else { "vGPU" };
        let f = match whole {
            true => finding("GA-SLICE-01", "slice", ids, FixBy::Provider),
            false => finding("GA-SLICE-02", "slice_in_use", ids, FixBy::Either),
        };
        f.arg("name", gpu.name.as_str())
            .arg("profile", format!("{kind} {}", slice.profile))
            .see(facts.device_pointer(&gpu.id), "device", gpu.id.to_string())
            .explains(requirements, |r| r.devices.contains(&gpu.id))
    };
    slices(facts).into_iter().map(one).collect()
}
