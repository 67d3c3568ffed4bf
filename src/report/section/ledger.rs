//! Where the time of the run went.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::report::view::{Page, Row, Table, percent};
use crate::unit::{Seconds, significant};

/// The section.
pub const SECTION: Section = Section {
    id: "ledger",
    template: include_str!("../../../report-templates/section/ledger.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct Ledger {
    table: Table,
    budget: String,
}

fn build(page: &mut Page) -> Option<Value> {
    let l = &page.record.ledger;
    let parts = [
        ("ledger.prepare", l.prepare),
        ("ledger.warm", l.warm),
        ("ledger.sample", l.sample),
        ("ledger.verify", l.verify),
        ("ledger.write", l.write),
        ("ledger.idle", l.idle),
        ("ledger.total", l.total),
    ];
    let row = |(key, time): &(&str, Seconds)| Row {
        name: page.t(key),
        cells: vec![significant(time.0), percent(time.0 / l.total.0)],
    };
    let columns = ["column.phase", "column.seconds", "column.part"].iter().map(|k| page.t(k)).collect();
    let table = Table { caption: String::new(), columns, rows: parts.iter().map(row).collect() };
    let budget = match page.record.run.budget {
        Some(budget) => page.fill("ledger.budget", &[("budget", &budget.to_string())]),
        None => page.fill("ledger.planned", &[("budget", &page.record.plan.budget.to_string())]),
    };
    view(&Ledger { table, budget })
}
