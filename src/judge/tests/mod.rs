//! The judge as a whole on small records: verdict and finding of each kind of trouble, and its properties.

mod circumstances;
mod claimed;
mod healthy;
mod identity;
mod missing;
mod money;
mod property;
mod shortfall;
mod sold;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::messages::MESSAGES;
use super::testing::*;
use super::*;
use crate::record::{
    BackendId, Better, CaseErrorKind, CaseId, DeviceId, EngineKind, NotPlanned, Notice, Observed, Outcome, Params,
    RunEnd, ThermalState, Verified,
};
use crate::spec::{Band, BandTable, Strength, table};
use crate::unit::{Bytes, Hertz, Seconds, Unit};

fn judged(record: &Record, offer: Option<&Offer>) -> Assessment {
    let assessment = judge(record, &suite(), offer, table());
    check_form(&assessment);
    assessment
}

fn codes(a: &Assessment) -> Vec<&str> {
    a.findings.iter().map(|f| f.code.as_str()).collect()
}

fn find<'a>(a: &'a Assessment, id: &str) -> &'a Requirement {
    a.requirements.iter().find(|r| r.id == id).unwrap_or_else(|| {
        panic!("no {id} in {:#?}", a.requirements.iter().map(|r| (&r.id, r.status)).collect::<Vec<_>>())
    })
}

fn gpu(index: u32) -> DeviceId {
    DeviceId::new(BackendId::Sim, index)
}

/// Everything any assessment must satisfy: known messages with their arguments, unique ids, explained states.
fn check_form(a: &Assessment) {
    let mut messages: Vec<&Message> = vec![&a.headline];
    messages.extend(&a.validity_reasons);
    messages.extend(a.requirements.iter().filter_map(|r| r.reason.as_ref()));
    messages.extend(a.requirements.iter().flat_map(|r| r.shares.iter().map(|s| &s.of)));
    messages.extend(a.not_tested.iter().map(|n| &n.reason));
    for f in &a.findings {
        messages.extend([&f.observed, &f.why, &f.ask]);
        messages.extend(f.ruled_out.iter().chain(f.evidence.iter().map(|e| &e.message)));
        assert!(!f.evidence.is_empty(), "{} shows nothing", f.code);
    }
    while let Some(message) = messages.pop() {
        let (_, args) = MESSAGES.iter().find(|(id, _)| *id == message.id).unwrap_or_else(|| panic!("{message:?}"));
        let own: Vec<&str> = message.args.keys().map(String::as_str).collect();
        assert_eq!(own, *args, "{}", message.id);
        messages.extend(message.args.values().filter_map(|a| match a {
            Argument::Message(m) => Some(m.as_ref()),
            _ => None,
        }));
    }
    let ids: BTreeSet<&str> = a.requirements.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids.len(), a.requirements.len(), "ids are unique");
    for r in &a.requirements {
        assert!(matches!(r.status, Status::Pass | Status::Fail) || r.reason.is_some(), "{r:?}");
    }
    let text = serde_json::to_string(a).unwrap();
    assert_eq!(&serde_json::from_str::<Assessment>(&text).unwrap(), a, "survives its file");
}
