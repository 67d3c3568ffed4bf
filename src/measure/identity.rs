//! What must be the same for a run to go on: boot, devices, driver, binary, suite.

use crate::measure::journal::Begin;
use crate::record::{DeviceInfo, Inventory};

/// A device in words, by everything that tells it from another.
pub fn text(device: &DeviceInfo) -> String {
    let uuid = device.uuid.as_deref().unwrap_or("no UUID");
    let pci = device.pci.as_ref().map_or("no PCI address", |p| p.address.as_str());
    let driver = device.driver.as_deref().unwrap_or("unknown driver");
    format!("{} ({uuid}, {pci}, {}, driver {driver})", device.name, device.memory)
}

/// The first thing that differs between the run as it began and now: what, before, after.
pub fn difference(begin: &Begin, now: &Begin) -> Option<(String, String, String)> {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let pairs = [
        ("the boot", or_unknown(&begin.run.boot_id), or_unknown(&now.run.boot_id)),
        ("the tool's executable", or_unknown(&begin.tool.binary_sha256), or_unknown(&now.tool.binary_sha256)),
        ("the suite", begin.suite.sha256.clone(), now.suite.sha256.clone()),
        ("the description of simulated devices", or_unknown(&begin.simulate), or_unknown(&now.simulate)),
    ];
    // What cannot be read cannot be shown to be the same.
    let differ = |(_, a, b): &&(&str, String, String)| a != b;
    if let Some((what, a, b)) = pairs.iter().find(differ) {
        return Some(((*what).to_owned(), a.clone(), b.clone()));
    }
    if or_unknown(&begin.tool.binary_sha256) == "unknown" {
        return Some(("the tool's executable".to_owned(), "unknown".to_owned(), "unknown".to_owned()));
    }
    if begin.run.boot_id.is_none() {
        return Some(("the boot".to_owned(), "unknown".to_owned(), "unknown".to_owned()));
    }
    device_difference(begin, &now.inventory)
}

fn device_difference(begin: &Begin, now: &Inventory) -> Option<(String, String, String)> {
    let used = begin.plan.cases.iter().flat_map(|c| &c.devices);
    let mut ids: Vec<_> = used.chain(&begin.inventory.selected).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().find_map(|id| {
        let shown = |i: &Inventory| i.device(id).map_or("absent".to_owned(), text);
        let (a, b) = (shown(&begin.inventory), shown(now));
        (a != b).then(|| (format!("device {id}"), a, b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::begin;

    type Change = fn(&mut Begin);

    #[test]
    fn every_change_that_matters_is_named() {
        let same = begin();
        assert_eq!(difference(&same, &same.clone()), None);
        let changes: [(Change, &str); 7] = [
            (|b| b.run.boot_id = Some("other".to_owned()), "boot"),
            (|b| b.tool.binary_sha256 = Some("other".to_owned()), "executable"),
            (|b| b.suite.sha256 = "other".to_owned(), "suite"),
            (|b| b.inventory.devices[0].uuid = Some("other".to_owned()), "sim:0"),
            (|b| b.inventory.devices[0].driver = Some("other".to_owned()), "sim:0"),
            (|b| b.inventory.devices.clear(), "sim:0"),
            (|b| b.simulate = Some("other".to_owned()), "simulated"),
        ];
        for (change, what) in changes {
            let mut now = begin();
            change(&mut now);
            let (named, ..) = difference(&same, &now).unwrap_or_else(|| panic!("{what} was not noticed"));
            assert!(named.contains(what), "{named}");
        }
    }

    #[test]
    fn what_is_unknown_is_not_the_same() {
        for change in [(|b: &mut Begin| b.run.boot_id = None) as Change, |b| b.tool.binary_sha256 = None] {
            let mut unknown = begin();
            change(&mut unknown);
            assert!(difference(&unknown, &unknown.clone()).is_some());
        }
    }
}
