//! Requirements: each demand on each unit, failures first. Units with the same conclusion share a row that shows the
//! worst of them; a unit that fails always has a row of its own.

use std::collections::BTreeMap;

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::{Class, Requirement, Share, Status};
use crate::report::reading::benchmark_of;
use crate::report::view::{Mark, Page, Prefix, devices, percent};
use crate::unit::Unit;

/// The section.
pub const SECTION: Section = Section {
    id: "requirements",
    template: include_str!("../../../report-templates/section/requirements.html"),
    listed: true,
    build,
};

/// Rows shown at most; the file holds all.
const MOST: usize = 160;

#[derive(Serialize)]
struct Requirements {
    rows: Vec<RowView>,
    hidden: Option<String>,
}

#[derive(Serialize)]
struct RowView {
    mark: Mark,
    class: String,
    subject: String,
    devices: String,
    limit: String,
    basis: String,
    measured: String,
    shares: Vec<String>,
    short: Option<String>,
    parts: Option<String>,
    reason: Option<String>,
}

/// Requirements of one row: the worst and how many there are.
pub struct Group<'a> {
    /// The one with the largest shortfall.
    pub worst: &'a Requirement,
    /// All.
    pub members: Vec<&'a Requirement>,
}

/// All requirements in the order of the report.
pub fn groups<'a>(requirements: &'a [Requirement]) -> Vec<Group<'a>> {
    let mut rows: BTreeMap<(usize, bool, usize), Group<'a>> = BTreeMap::new();
    let mut first: Vec<&Requirement> = Vec::new();
    for requirement in requirements {
        let alike = first.iter().position(|f| shares_row(f, requirement));
        let number = alike.unwrap_or_else(|| {
            first.push(requirement);
            first.len() - 1
        });
        let key = (rank(requirement.status), requirement.class == Class::Graded, number);
        let group = rows.entry(key).or_insert_with(|| Group { worst: requirement, members: Vec::new() });
        group.members.push(requirement);
        if requirement.shortfall() > group.worst.shortfall() {
            group.worst = requirement;
        }
    }
    rows.into_values().collect()
}

fn rank(status: Status) -> usize {
    match status {
        Status::Fail => 0,
        Status::ConditionalFail => 1,
        Status::Inconclusive => 2,
        Status::NotTested => 3,
        Status::ConditionalPass => 4,
        Status::Pass => 5,
        Status::NotApplicable => 6,
    }
}

fn shares_row(a: &Requirement, b: &Requirement) -> bool {
    let demand = |r: &Requirement| r.id.split_once('/').map(|(d, _)| d.to_owned());
    !matches!(a.status, Status::Fail | Status::ConditionalFail)
        && a.status == b.status
        && a.class == b.class
        && a.metric == b.metric
        && a.reason == b.reason
        && (a.labels == b.labels && demand(a) == demand(b) || without_number(a, b))
}

/// Cases of one benchmark of which only the conclusion counts: right, complete, not tested, or not compared (their
/// numbers are in the sections below).
fn without_number(a: &Requirement, b: &Requirement) -> bool {
    let no_number = |r: &Requirement| r.measured.is_none() || r.status == Status::NotApplicable;
    no_number(a) && no_number(b) && a.domain == b.domain && benchmark_of(a) == benchmark_of(b)
}

fn build(page: &mut Page) -> Option<Value> {
    let groups = groups(&page.assessment.requirements);
    let rows: Vec<RowView> = groups.iter().take(MOST).map(|g| row(page, g)).collect();
    let hidden = groups.len().saturating_sub(MOST);
    let hidden = (hidden > 0).then(|| page.fill("requirements.hidden", &[("n", &hidden.to_string())]));
    view(&Requirements { rows, hidden })
}

fn row(page: &Page, group: &Group) -> RowView {
    let r = group.worst;
    let limit = r.limit.as_ref().map(|l| l.value);
    let prefix = Prefix::of(r.unit, r.measured.map(|m| m.median).or(limit));
    let all: Vec<_> = group.members.iter().flat_map(|m| m.devices.iter().cloned()).collect();
    // One number can only speak for one case.
    let one_case = group.members.iter().all(|m| m.labels == r.labels);
    let shares = r.shares.iter().filter(|_| one_case);
    let share = |s: &Share| page.fill("share.of", &[("ratio", &percent(s.ratio)), ("of", &page.message(&s.of))]);
    let mut place = devices(&all);
    if group.members.len() > 1 && r.measured.is_some() && limit.is_some() {
        place = page.fill("requirements.worst", &[("devices", &place), ("worst", &devices(&r.devices))]);
    }
    RowView {
        mark: page.status(r.status),
        class: page.class(r.class),
        subject: page.subject(&group.members),
        devices: place,
        limit: limit_text(page, r, &prefix),
        basis: r.limit.as_ref().map_or(String::new(), |l| page.basis(&l.basis)),
        measured: if one_case { measured(r, &prefix) } else { "–".to_owned() },
        shares: shares.map(share).collect(),
        short: short(page, r),
        parts: parts(page, r),
        reason: r.reason.as_ref().map(|m| page.message(m)),
    }
}

/// Counts of right results and complete cases need no number.
fn limit_text(page: &Page, r: &Requirement, prefix: &Prefix) -> String {
    match &r.limit {
        Some(limit) if r.measured.is_none() && matches!(r.unit, Unit::Count) && limit.value <= 1.0 => {
            page.t("requirements.required")
        }
        Some(limit) => page.limit(r, limit, prefix),
        None if r.measured.is_none() => "–".to_owned(),
        None => page.t("requirements.no_limit"),
    }
}

fn measured(r: &Requirement, prefix: &Prefix) -> String {
    r.measured.map_or_else(
        || "–".to_owned(),
        |m| format!("{} ± {} {}", prefix.number(m.median), prefix.uncertainty(m.uncertainty), prefix.symbol()),
    )
}

/// `39.0 % short of the limit`, where it is.
pub fn short(page: &Page, r: &Requirement) -> Option<String> {
    let short = r.shortfall().filter(|s| *s > 0.0)?;
    Some(page.fill("requirements.short", &[("ratio", &percent(short))]))
}

/// `= 100 % of the units × 72.0 % of the clock × 103 % per unit and clock`, where a shortfall can be taken apart.
fn parts(page: &Page, r: &Requirement) -> Option<String> {
    let parts = r.parts?;
    let [units, clock, per_clock] = [parts.units, parts.clock, parts.per_clock].map(percent);
    Some(page.fill("requirements.parts", &[("units", &units), ("clock", &clock), ("per_clock", &per_clock)]))
}
