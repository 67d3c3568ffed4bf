//! Overview: every result that has a limit, as a share of it, in one picture.

use serde::Serialize;
use tera::Value;

use super::requirements::{Group, groups};
use super::{Section, view};
use crate::record::Better;
use crate::report::chart::{Interval, IntervalRow};
use crate::report::view::{Page, devices};

/// The section.
pub const SECTION: Section = Section {
    id: "overview",
    template: include_str!("../../../report-templates/section/overview.html"),
    listed: true,
    build,
};

/// Rows drawn at most.
const MOST: usize = 48;

#[derive(Serialize)]
struct Overview {
    chart: Option<usize>,
    note: String,
    hidden: Option<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let groups = groups(&page.assessment.requirements);
    let rows: Vec<IntervalRow> = groups.iter().filter_map(|g| row(page, g)).collect();
    if rows.is_empty() {
        return view(&Overview { chart: None, note: page.t("overview.empty"), hidden: None });
    }
    let hidden = rows.len().saturating_sub(MOST);
    let note = page.t("overview.note");
    let chart = Interval {
        title: page.t("section.overview"),
        description: note.clone(),
        axis: page.t("overview.axis"),
        rows: rows.into_iter().take(MOST).collect(),
    };
    let hidden = (hidden > 0).then(|| page.fill("overview.hidden", &[("n", &hidden.to_string())]));
    let chart = Some(page.keep(chart.svg()));
    view(&Overview { chart, note, hidden })
}

/// Shares are drawn so that right of 100 % is the good side for both directions.
fn row(page: &Page, group: &Group) -> Option<IntervalRow> {
    let r = group.worst;
    let (limit, measured) = (r.limit.as_ref()?.value, r.measured?);
    let relative = measured.uncertainty / measured.median;
    let value = match r.better {
        Better::Higher => measured.median / limit,
        Better::Lower => limit / measured.median,
    };
    let place = if group.members.len() > 1 {
        page.fill("overview.worst", &[("worst", &devices(&r.devices)), ("n", &group.members.len().to_string())])
    } else {
        devices(&r.devices)
    };
    let row = IntervalRow {
        label: format!("{} · {place}", page.subject(&group.members)),
        shape: page.status(r.status).shape,
        value,
        uncertainty: value * relative,
    };
    (row.value.is_finite() && row.uncertainty.is_finite()).then_some(row)
}
