//! Item tested: devices, host, software and storage as they were found.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::record::{DeviceInfo, Disk, PciIdentity, WorkScale};
use crate::report::text::{LONG, SHORT, clean};
use crate::report::view::{Fact, Page, Row, Table};

/// The section.
pub const SECTION: Section =
    Section { id: "item", template: include_str!("../../../report-templates/section/item.html"), listed: true, build };

#[derive(Serialize)]
struct Item {
    devices: Table,
    host: Vec<Fact>,
    storage: Vec<Fact>,
    scaled: Option<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let inventory = &page.record.inventory;
    let selected: Vec<&DeviceInfo> = inventory.selected.iter().filter_map(|id| inventory.device(id)).collect();
    let keys = ["device", "name", "uuid", "pci", "memory", "cache", "units", "clock", "driver", "model"];
    let columns = keys.iter().map(|k| page.words.name("fact", k)).collect();
    let rows = selected.iter().map(|d| device(page, d)).collect();
    let scaled = selected.iter().find(|d| d.scale != WorkScale::ONE).map(|d| {
        let s = d.scale;
        let words =
            [("edge", s.edge.to_string()), ("bytes", s.bytes.to_string()), ("iterations", s.iterations.to_string())];
        page.fill("item.scaled", &words.each_ref().map(|(n, v)| (*n, v.as_str())))
    });
    view(&Item {
        devices: Table { caption: page.t("item.devices"), columns, rows },
        host: host(page),
        storage: storage(page),
        scaled,
    })
}

fn device(page: &Page, device: &DeviceInfo) -> Row {
    let unknown = || page.t("word.unknown");
    let text = |t: &Option<String>| t.as_ref().map_or_else(unknown, |t| clean(t, SHORT));
    Row {
        name: device.id.to_string(),
        cells: vec![
            clean(&device.name, SHORT),
            text(&device.uuid),
            device.pci.as_ref().map_or("–".to_owned(), pci),
            device.memory.to_string(),
            device.last_level_cache.map_or_else(unknown, |c| c.to_string()),
            device.units.map_or_else(unknown, |u| u.to_string()),
            device.clock_max.map_or_else(unknown, |c| c.to_string()),
            [&device.driver, &device.api]
                .into_iter()
                .flatten()
                .map(|t| clean(t, SHORT))
                .collect::<Vec<_>>()
                .join(" · "),
            device.spec.as_ref().map_or("–".to_owned(), |s| clean(s, SHORT)),
        ],
    }
}

fn pci(pci: &PciIdentity) -> String {
    let subsystem = pci.subsystem.map_or(String::new(), |(v, d)| format!(" / {v:04x}:{d:04x}"));
    format!("{} {:04x}:{:04x}{subsystem}", clean(&pci.address, 40), pci.vendor, pci.device)
}

fn host(page: &Page) -> Vec<Fact> {
    let h = &page.record.inventory.host;
    let cpus = page.fill(
        "item.cpus",
        &[
            ("usable", format!("{:.4}", h.cpus_usable).trim_end_matches('0').trim_end_matches('.')),
            ("total", &h.cpus_total.to_string()),
        ],
    );
    let memory =
        page.fill("item.memory", &[("usable", &h.memory_usable.to_string()), ("total", &h.memory_total.to_string())]);
    let mut facts = vec![
        page.fact("hostname", clean(&h.hostname, SHORT)),
        page.fact("cpu", clean(&h.cpu, SHORT)),
        page.fact("cpus", cpus),
        page.fact("memory", memory),
        page.fact("kernel", clean(&h.kernel, SHORT)),
        page.fact("os", clean(&h.os, SHORT)),
    ];
    let optional = [("virtualization", &h.virtualization), ("container", &h.container), ("cloud", &h.cloud)];
    facts.extend(optional.into_iter().filter_map(|(n, v)| Some(page.fact(n, clean(v.as_ref()?, SHORT)))));
    if !h.numa.is_empty() {
        facts.push(page.fact("numa", h.numa.iter().map(|n| clean(n, SHORT)).collect::<Vec<_>>().join("; ")));
    }
    if let Some(disks) = h.disks.value().filter(|d| !d.is_empty()) {
        let disk = |d: &Disk| {
            let model = d.model.as_ref().map_or_else(String::new, |m| format!(" {}", clean(m, SHORT)));
            format!("{}{model} {}", clean(&d.name, SHORT), d.size)
        };
        facts.push(page.fact("disks", disks.iter().map(disk).collect::<Vec<_>>().join("; ")));
    }
    if !h.gpus_on_bus().is_empty() {
        facts.push(page.fact("pci_gpus", h.gpus_on_bus().iter().map(pci).collect::<Vec<_>>().join("; ")));
    }
    facts
}

fn storage(page: &Page) -> Vec<Fact> {
    let Some(s) = &page.record.inventory.storage else { return Vec::new() };
    let mut facts = vec![page.fact("path", clean(&s.path, LONG)), page.fact("filesystem", clean(&s.filesystem, SHORT))];
    facts.extend(s.device.as_ref().map(|d| page.fact("backing", clean(d, SHORT))));
    facts.push(page.fact("free", s.free.to_string()));
    facts
}
