//! What must be the same for a run to go on: boot, devices, driver, executable, suite.

use crate::record::{DeviceInfo, Inventory, Record};

/// The machine and the tool at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// Kernel boot id.
    pub boot_id: Option<String>,
    /// Hash of the executable.
    pub binary_sha256: Option<String>,
    /// Hash of the suite.
    pub suite_sha256: String,
    /// What is there.
    pub inventory: Inventory,
}

/// A device in words, by everything that tells it from another.
pub fn text(device: &DeviceInfo) -> String {
    let uuid = device.uuid.as_deref().unwrap_or("no UUID");
    let pci = device.pci.as_ref().map_or("no PCI address", |p| p.address.as_str());
    let driver = device.driver.as_deref().unwrap_or("unknown");
    format!("{} ({uuid}, {pci}, {}, driver {driver})", device.name, device.memory)
}

/// The first thing that differs between the run as it began and now, or that cannot be shown to be the same:
/// what, before, after.
pub fn difference(then: &Record, now: &Identity) -> Option<(String, String, String)> {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "not readable".to_owned());
    let suite = Some(&then.suite.sha256);
    let pairs = [
        ("the boot of this machine", &then.run.boot_id, &now.boot_id),
        ("the tool's executable", &then.tool.binary_sha256, &now.binary_sha256),
        ("the suite", &suite.cloned(), &Some(now.suite_sha256.clone())),
    ];
    let differ = |(_, a, b): &&(&str, &Option<String>, &Option<String>)| a.is_none() || a != b;
    match pairs.iter().find(differ) {
        Some((what, a, b)) => Some(((*what).to_owned(), known(a), known(b))),
        None => device_difference(then, &now.inventory),
    }
}

fn device_difference(then: &Record, now: &Inventory) -> Option<(String, String, String)> {
    let used = then.plan.cases.iter().flat_map(|c| &c.devices);
    let mut ids: Vec<_> = used.chain(&then.inventory.selected).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().find_map(|id| {
        let shown = |i: &Inventory| i.device(id).map_or("absent".to_owned(), text);
        let (a, b) = (shown(&then.inventory), shown(now));
        (a != b).then(|| (format!("device {id}"), a, b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::begin;

    fn now() -> Identity {
        let record = begin().record;
        Identity {
            boot_id: record.run.boot_id,
            binary_sha256: record.tool.binary_sha256,
            suite_sha256: record.suite.sha256,
            inventory: record.inventory,
        }
    }

    type Change = fn(&mut Identity);

    #[test]
    fn every_change_that_matters_is_named() {
        assert_eq!(difference(&begin().record, &now()), None);
        let changes: [(Change, &str); 8] = [
            (|n| n.boot_id = Some("other".to_owned()), "boot"),
            (|n| n.boot_id = None, "boot"),
            (|n| n.binary_sha256 = Some("other".to_owned()), "executable"),
            (|n| n.suite_sha256 = "other".to_owned(), "suite"),
            (|n| n.inventory.devices[0].uuid = Some("other".to_owned()), "sim:0"),
            (|n| n.inventory.devices[0].driver = Some("other".to_owned()), "sim:0"),
            (|n| n.inventory.devices[0].name = "other".to_owned(), "sim:0"),
            (|n| n.inventory.devices.clear(), "sim:0"),
        ];
        for (change, what) in changes {
            let mut changed = now();
            change(&mut changed);
            let difference = difference(&begin().record, &changed);
            assert!(difference.as_ref().is_some_and(|(named, ..)| named.contains(what)), "{what}: {difference:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_the_same() {
        let mut then = begin().record;
        then.run.boot_id = None;
        let unknown = Identity { boot_id: None, ..now() };
        assert!(difference(&then, &unknown).is_some());
    }
}
