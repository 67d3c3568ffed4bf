//! Record and assessment turned into strings, once: what the sections share. Templates only place what is made here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::MethodText;
use super::chart::Shape;
use super::locale::Catalogue;
use super::reading::{Reading, benchmark_of, readings};
use super::text::{LONG, SHORT, clean};
use crate::judge::{Assessment, Basis, BasisKind, Class, Limit, Message, Requirement, Status, Validity, Verdict};
use crate::record::{Better, DeviceId, Observed, Record, Value};
use crate::unit::{Quantity, Ratio, Unit, significant};

/// Everything a section needs, and the charts it leaves behind.
pub struct Page<'a> {
    /// What happened.
    pub record: &'a Record,
    /// What it means.
    pub assessment: &'a Assessment,
    /// How each benchmark works.
    pub methods: &'a [MethodText<'a>],
    /// Words.
    pub words: &'static Catalogue,
    /// Measured series.
    pub readings: Vec<Reading<'a>>,
    /// Charts made so far; figures hold their number.
    pub charts: Vec<String>,
}

/// A status as it is shown: shape, word and (through the shape's class) colour.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// Class and `#mark-…`.
    pub shape: Shape,
    /// Word.
    pub word: String,
}

/// A named fact.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    /// What.
    pub name: String,
    /// Text.
    pub value: String,
}

/// A table of ready strings.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Table {
    /// Over it.
    pub caption: String,
    /// Column heads; the first is the row's name.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its cells, right-aligned.
    pub cells: Vec<String>,
}

/// A chart with the table of its numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Over it.
    pub title: String,
    /// What to see, in a sentence or two.
    pub note: String,
    /// Number of its chart in [`Page::charts`], if it has one.
    pub chart: Option<usize>,
    /// Its numbers.
    pub table: Table,
}

/// Prefix and factor shared by a column or an axis.
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    unit: Unit,
    prefix: &'static str,
    factor: f64,
}

impl Prefix {
    /// The prefix that suits the largest of `values`.
    pub fn of(unit: Unit, values: impl IntoIterator<Item = f64>) -> Prefix {
        let largest = values.into_iter().filter(|v| v.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
        let (prefix, factor) = Quantity { value: largest, unit }.scale();
        Prefix { unit, prefix, factor }
    }

    /// Unit with prefix, as a column head or axis says it.
    pub fn symbol(&self) -> String {
        format!("{}{}", self.prefix, self.unit.symbol())
    }

    /// Value in this prefix.
    pub fn scaled(&self, value: f64) -> f64 {
        value / self.factor
    }

    /// Number in this prefix, three significant digits.
    pub fn number(&self, value: f64) -> String {
        if value.is_finite() { significant(value / self.factor) } else { "–".to_owned() }
    }

    /// Number with unit.
    pub fn quantity(&self, value: f64) -> String {
        format!("{} {}", self.number(value), self.symbol()).trim_end().to_owned()
    }

    /// An uncertainty in this prefix with at most two significant digits.
    pub fn uncertainty(&self, value: f64) -> String {
        let value = (value / self.factor).abs();
        if !(value.is_finite() && value > 0.0) {
            return if value == 0.0 { "0".to_owned() } else { "–".to_owned() };
        }
        let decimals = (1 - value.log10().floor() as i32).clamp(0, 9) as usize;
        format!("{value:.decimals$}")
    }
}

impl<'a> Page<'a> {
    /// Gathers the readings.
    pub fn new(
        record: &'a Record,
        assessment: &'a Assessment,
        methods: &'a [MethodText<'a>],
        words: &'static Catalogue,
    ) -> Page<'a> {
        Page { record, assessment, methods, words, readings: readings(record, assessment), charts: Vec::new() }
    }

    /// The text called `key`.
    pub fn t(&self, key: &str) -> String {
        self.words.text(key)
    }

    /// The text called `key`, filled.
    pub fn fill(&self, key: &str, arguments: &[(&str, &str)]) -> String {
        self.words.fill(key, arguments)
    }

    /// Keeps a chart and returns its number.
    pub fn keep(&mut self, chart: String) -> usize {
        self.charts.push(chart);
        self.charts.len() - 1
    }

    /// A fact whose name is the text `fact.<name>`.
    pub fn fact(&self, name: &str, value: impl Into<String>) -> Fact {
        Fact { name: self.words.name("fact", name), value: value.into() }
    }

    /// A value that may not be observable.
    pub fn observed(&self, value: &Observed<String>) -> String {
        match value {
            Observed::Value(text) => clean(text, LONG),
            Observed::NotObservable(reason) => self.fill("not_observable", &[("reason", &clean(reason, LONG))]),
        }
    }

    /// Title of a benchmark.
    pub fn benchmark(&self, id: &str) -> String {
        if self.words.texts().contains_key(&format!("benchmark.{id}")) {
            return self.words.name("benchmark", id);
        }
        let title = self.methods.iter().find(|m| m.id == id).map(|m| m.title).filter(|t| !t.is_empty());
        clean(title.unwrap_or(id), SHORT)
    }

    /// One attribute in words: `n 8192`, `fp16`, `read`.
    pub fn attribute(&self, name: &str, value: &str) -> String {
        let value = self.words.name("word", value);
        match name {
            "type" | "op" | "direction" | "memory" | "phase" | "state" | "percentile" => value,
            // A name never parts from its value.
            name => format!("{}\u{a0}{value}", self.words.name("param", name)),
        }
    }

    /// Attributes in words, joined.
    pub fn attributes(&self, attributes: &BTreeMap<String, Value>) -> String {
        let shown = attributes.iter().map(|(n, v)| (n.as_str(), v.to_string()));
        self.joined(shown.collect())
    }

    /// What the work is first, the thermal state last.
    fn joined(&self, mut attributes: Vec<(&str, String)>) -> String {
        attributes.sort_by_key(|(name, _)| match *name {
            "type" | "op" | "direction" | "victim" => 0,
            "state" => 2,
            _ => 1,
        });
        let parts: Vec<String> = attributes.iter().map(|(n, v)| self.attribute(n, v)).collect();
        parts.join(" · ")
    }

    /// What requirements that share a row are about: metric, benchmark where the metric does not say it, and what
    /// tells the case apart, or how many cases there are.
    pub fn subject(&self, members: &[&Requirement]) -> String {
        let Some(first) = members.first() else { return String::new() };
        let metric = &first.metric;
        let mut parts = vec![if self.words.texts().contains_key(&format!("benchmark.{metric}")) {
            self.benchmark(metric)
        } else {
            self.words.name("metric", metric)
        }];
        let plain = !metric.contains('.');
        match benchmark_of(first).filter(|_| plain) {
            Some(benchmark) => parts.push(self.benchmark(benchmark)),
            None if plain && metric == "reference" => parts.push(self.words.name("domain", &first.domain)),
            None => {}
        }
        if members.iter().all(|m| m.labels == first.labels) {
            let labels = first.labels.iter().map(|(n, v)| (n.as_str(), clean(v, SHORT))).collect();
            parts.push(self.joined(labels));
        } else {
            let distinct: BTreeSet<_> = members.iter().map(|m| &m.labels).collect();
            parts.push(self.fill("requirements.cases", &[("n", &distinct.len().to_string())]));
        }
        parts.retain(|p| !p.is_empty());
        parts.join(" · ")
    }

    /// The mark of a requirement's status.
    pub fn status(&self, status: Status) -> Mark {
        let (shape, key) = match status {
            Status::Pass => (Shape::Pass, "status.pass"),
            Status::ConditionalPass => (Shape::ConditionalPass, "status.conditional_pass"),
            Status::ConditionalFail => (Shape::ConditionalFail, "status.conditional_fail"),
            Status::Fail => (Shape::Fail, "status.fail"),
            Status::Inconclusive => (Shape::Open, "status.inconclusive"),
            Status::NotTested => (Shape::None, "status.not_tested"),
            Status::NotApplicable => (Shape::None, "status.not_applicable"),
        };
        Mark { shape, word: self.t(key) }
    }

    /// The mark of the verdict.
    pub fn verdict(&self) -> Mark {
        let (shape, key) = match self.assessment.verdict {
            Verdict::Accepted => (Shape::Pass, "verdict.accepted"),
            Verdict::AcceptedWithReservations => (Shape::ConditionalPass, "verdict.accepted_with_reservations"),
            Verdict::Inconclusive => (Shape::Open, "verdict.inconclusive"),
            Verdict::NotAccepted => (Shape::Fail, "verdict.not_accepted"),
        };
        Mark { shape, word: self.t(key) }
    }

    /// The word for the validity.
    pub fn validity(&self) -> String {
        self.t(match self.assessment.validity {
            Validity::Valid => "validity.valid",
            Validity::Invalid => "validity.invalid",
            Validity::Unchecked => "validity.unchecked",
        })
    }

    /// Gate or graded, in words.
    pub fn class(&self, class: Class) -> String {
        self.t(match class {
            Class::Gate => "class.gate",
            Class::Graded => "class.graded",
        })
    }

    /// `≥ 333 GB/s`, in the prefix of the measured value.
    pub fn limit(&self, requirement: &Requirement, limit: &Limit, prefix: &Prefix) -> String {
        let sign = match requirement.better {
            Better::Higher => "≥",
            Better::Lower => "≤",
        };
        format!("{sign} {}", prefix.quantity(limit.value))
    }

    /// What a limit rests on, with its source.
    pub fn basis(&self, basis: &Basis) -> String {
        let kind = self.t(match basis.kind {
            BasisKind::Guarantee => "basis.guarantee",
            BasisKind::Band => "basis.band",
            BasisKind::ClassBand => "basis.class_band",
            BasisKind::Peers => "basis.peers",
            BasisKind::SameRun => "basis.same_run",
            BasisKind::Correctness => "basis.correctness",
            BasisKind::Completeness => "basis.completeness",
            BasisKind::Identity => "basis.identity",
        });
        let source = clean(&basis.source, LONG);
        if source.is_empty() { kind } else { format!("{kind}: {source}") }
    }

    /// A judged message in words.
    pub fn message(&self, message: &Message) -> String {
        self.words.message(message)
    }

    /// Messages in words.
    pub fn messages(&self, messages: &[Message]) -> Vec<String> {
        messages.iter().map(|m| self.message(m)).collect()
    }
}

/// Device ids with runs joined: `sim:0–7`, `cuda:0, cuda:2`.
pub fn devices(ids: &[DeviceId]) -> String {
    let mut sorted = ids.to_vec();
    sorted.sort();
    sorted.dedup();
    let mut runs: Vec<(DeviceId, u32)> = Vec::new();
    for id in sorted {
        match runs.last_mut() {
            Some((first, last)) if first.backend == id.backend && *last + 1 == id.index => *last = id.index,
            _ => runs.push((id.clone(), id.index)),
        }
    }
    let show = |(first, last): &(DeviceId, u32)| match last - first.index {
        0 => first.to_string(),
        1 => format!("{first}, {}:{last}", first.backend),
        _ => format!("{first}–{last}"),
    };
    runs.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// A ratio as a percentage.
pub fn percent(ratio: f64) -> String {
    if ratio.is_finite() { Ratio(ratio).to_string() } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BackendId;

    #[test]
    fn device_runs_are_joined() {
        let ids = |list: &[u32]| list.iter().map(|i| DeviceId::new(BackendId::Sim, *i)).collect::<Vec<_>>();
        assert_eq!(devices(&ids(&[3, 0, 1, 2])), "sim:0–3");
        assert_eq!(devices(&ids(&[0, 1, 5])), "sim:0, sim:1, sim:5");
        assert_eq!(devices(&[]), "");
    }

    #[test]
    fn a_column_shares_its_prefix() {
        let prefix = Prefix::of(Unit::BytePerSecond, [2.04e11, 9.0e8, f64::NAN]);
        assert_eq!(prefix.symbol(), "GB/s");
        assert_eq!(prefix.number(9.0e8), "0.900");
        assert_eq!(prefix.uncertainty(2.04e9), "2.0");
        assert_eq!(prefix.uncertainty(4.56e10), "46");
        assert_eq!(prefix.number(f64::NAN), "–");
    }
}
