//! Is it normal? Each result beside what was published of healthy units of the same model under the same conditions.
//! Left out where nothing published compares.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::normal::Placed;
use crate::report::text::{SHORT, clean};
use crate::report::view::{Page, Row, Table};

/// The section.
pub const SECTION: Section = Section {
    id: "normal",
    template: include_str!("../../../report-templates/section/normal.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct NormalView {
    lead: String,
    table: Table,
    notes: Vec<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let placed = &page.assessment.normal;
    if placed.is_empty() {
        return None;
    }
    let other = placed.iter().any(|p| !p.same_state).then(|| page.t("normal.other_state"));
    view(&NormalView {
        lead: page.t("normal.lead"),
        table: Table {
            caption: page.t("normal.table"),
            columns: COLUMNS.map(|c| page.t(&format!("normal.column.{c}"))).into(),
            rows: lowest(placed).map(|p| Row { name: name(page, p), cells: cells(p) }).collect(),
        },
        notes: other.into_iter().collect(),
    })
}

/// Of each result the unit that delivers least: eight rows of one kind hide the one to look at.
fn lowest(placed: &[Placed]) -> impl Iterator<Item = &Placed> {
    let is_of = |a: &Placed, b: &Placed| a.metric == b.metric && a.what == b.what && a.model == b.model;
    let is_lowest = move |(i, p): (usize, &Placed)| {
        placed
            .iter()
            .enumerate()
            .filter(|(_, o)| is_of(o, p))
            .all(|(j, o)| p.value < o.value || (p.value == o.value && i <= j))
    };
    placed.iter().enumerate().filter(move |(i, p)| is_lowest((*i, p))).map(|(_, p)| p)
}

/// Columns, the row's name first.
pub const COLUMNS: [&str; 7] = ["what", "device", "own", "n", "p5", "median", "p95"];

/// "Memory bandwidth triad", with a mark where the published numbers are of another thermal state.
pub fn name(page: &Page, placed: &Placed) -> String {
    let mark = if placed.same_state { "" } else { " *" };
    format!("{} {}{mark}", page.words.name("metric", &placed.metric), clean(&placed.what, SHORT))
}

/// Cells of one row. Few values have no percentiles: lowest and highest stand in their place, in brackets.
pub fn cells(placed: &Placed) -> Vec<String> {
    let value = |v: f64| placed.quantity(v).to_string();
    let end = |percentile: Option<f64>, extreme: f64| match percentile {
        Some(p) => value(p),
        None => format!("({})", value(extreme)),
    };
    vec![
        clean(&placed.device.to_string(), SHORT),
        value(placed.value),
        format!("{} / {}", placed.n, placed.sources),
        end(placed.p5, placed.lowest),
        value(placed.median),
        end(placed.p95, placed.highest),
    ]
}
