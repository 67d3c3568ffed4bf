//! Suite files: TOML in, [`Suite`] out, or a complaint with its place.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use super::{Demand, DeviceFilter, LimitRule, Run, Subject, Suite, combinations};
use crate::config::{self, Document, ParseError, Spanned};
use crate::record::{RoundsPlan, Source, Targeting, ThermalState, Value, Vocabulary, VocabularyEntry};
use crate::unit::{Bytes, Seconds, Unit};

/// Most cases of one run line, and most run lines or demands of a suite.
const MOST: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    name: Spanned<String>,
    version: Spanned<i64>,
    title: Spanned<String>,
    budget: Spanned<String>,
    rounds: RoundsFile,
    soak: Spanned<String>,
    #[serde(default)]
    needs_gpu: bool,
    #[serde(default)]
    run: Vec<RunFile>,
    #[serde(default)]
    demand: Vec<DemandFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundsFile {
    min: Spanned<i64>,
    max: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    benchmark: Spanned<String>,
    #[serde(default)]
    params: BTreeMap<Spanned<String>, Spanned<Values>>,
    on: Option<DeviceFilter>,
    targeting: Option<Targeting>,
    block: Spanned<String>,
    precision: Spanned<String>,
    value: Spanned<i64>,
    state: Option<ThermalState>,
    size_cap: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DemandFile {
    id: Spanned<String>,
    metric: Option<Spanned<String>>,
    benchmark: Option<Spanned<String>>,
    #[serde(default, rename = "where")]
    filter: BTreeMap<Spanned<String>, Spanned<String>>,
    on: Option<DeviceFilter>,
    limit: Spanned<LimitRule>,
    class: Spanned<ClassFile>,
    cap: Option<Spanned<String>>,
    why: Spanned<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum ClassFile {
    Gate,
    Graded,
}

/// One value or a list of them, each with its place where the reader gives one.
struct Values(Vec<(Scalar, Option<Range<usize>>)>);

enum Scalar {
    Int(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or a text")
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Scalar, E> {
                Ok(Scalar::Int(n))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, a text, or a list of them")
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Values, E> {
                Ok(Values(vec![(Scalar::Int(n), None)]))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Values, E> {
                Ok(Values(vec![(Scalar::Text(text.to_owned()), None)]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element::<Spanned<Scalar>>()? {
                    let span = value.span();
                    values.push((value.into_inner(), Some(span)));
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// The suite in `text`. `name` is shown in errors and kept in the record; `vocabulary` holds the words that
/// exist. Errors: anything unknown, missing, absurd or contradictory, each with its place.
pub fn parse(name: &str, text: &str, vocabulary: &Vocabulary) -> Result<Suite, ParseError> {
    let document = Document::new(name, text)?;
    let file: SuiteFile = document.read()?;
    let budget = document.quantity(&file.budget, "budget", Unit::Second, 1.0..=7.0 * 86400.0)?;
    let suite = Suite {
        name: document.identifier(&file.name, "name")?,
        version: document.whole(&file.version, "version", 1..=1_000_000)?,
        title: document.text(&file.title, "title")?,
        budget: Seconds(budget),
        rounds: rounds(&document, &file.rounds)?,
        soak: Seconds(document.quantity(&file.soak, "soak", Unit::Second, 0.0..=budget)?),
        needs_gpu: file.needs_gpu,
        runs: runs(&document, &file, vocabulary)?,
        demands: demands(&document, &file, vocabulary)?,
        source: Source { name: name.to_owned(), sha256: config::sha256(text), text: text.to_owned() },
    };
    Ok(suite)
}

fn rounds(document: &Document<'_>, file: &RoundsFile) -> Result<RoundsPlan, ParseError> {
    let min = document.whole(&file.min, "rounds.min", 1..=10_000)?;
    let max = document.whole(&file.max, "rounds.max", 1..=10_000)?;
    if max < min {
        return Err(document.error(file.max.span(), format!("rounds.max {max} is below rounds.min {min}")));
    }
    Ok(RoundsPlan { min, max })
}

fn runs(document: &Document<'_>, file: &SuiteFile, vocabulary: &Vocabulary) -> Result<Vec<Run>, ParseError> {
    let Some(first) = file.run.first() else {
        return Err(document.error(file.name.span(), "the suite runs nothing").with_help("add a [[run]]"));
    };
    if file.run.len() > MOST {
        return Err(document.error(first.benchmark.span(), format!("more than {MOST} [[run]] in one suite")));
    }
    let mut seen = HashSet::new();
    let mut runs = Vec::new();
    for line in &file.run {
        let run = run(document, line, vocabulary)?;
        for params in combinations(&run.params) {
            let key = format!("{}[{params}] on {:?} {:?}", run.benchmark, run.on, run.targeting);
            if !seen.insert(key) {
                let message = format!("{}[{params}] is already in an earlier [[run]]", run.benchmark);
                return Err(document.error(line.benchmark.span(), message));
            }
        }
        runs.push(run);
    }
    Ok(runs)
}

fn run(document: &Document<'_>, line: &RunFile, vocabulary: &Vocabulary) -> Result<Run, ParseError> {
    let entry = document.benchmark(&line.benchmark, vocabulary)?;
    let size_cap = line.size_cap.as_ref();
    let size_cap =
        size_cap.map(|s| document.quantity(s, "size_cap", Unit::Byte, 4096.0..=2f64.powi(50))).transpose()?;
    Ok(Run {
        benchmark: entry.id.clone(),
        params: params(document, line, entry)?,
        on: line.on.unwrap_or(DeviceFilter::Any),
        targeting: line.targeting.unwrap_or(Targeting::Together),
        block: Seconds(document.quantity(&line.block, "block", Unit::Second, 0.001..=600.0)?),
        precision: document.quantity(&line.precision, "precision", Unit::Ratio, 0.0001..=1.0)?,
        value: document.whole(&line.value, "value", 0..=1000)?,
        state: line.state.unwrap_or(ThermalState::Warm),
        size_cap: size_cap.map(Bytes),
    })
}

fn params(
    document: &Document<'_>,
    line: &RunFile,
    entry: &VocabularyEntry,
) -> Result<BTreeMap<String, Vec<Value>>, ParseError> {
    let mut params = BTreeMap::new();
    let mut cases: usize = 1;
    for (name, values) in &line.params {
        let Some((_, words)) = entry.params.iter().find(|(known, _)| known == name.get_ref()) else {
            let kind = format!("parameter of {}", entry.id);
            let known = entry.params.iter().map(|(known, _)| known.as_str());
            return Err(document.unknown(name.span(), &kind, name.get_ref(), known));
        };
        let mut list = Vec::new();
        for (scalar, span) in &values.get_ref().0 {
            let span = span.clone().unwrap_or(values.span());
            let value = value(document, scalar, span.clone(), name.get_ref(), words)?;
            if list.contains(&value) {
                return Err(document.error(span, format!("{value} is listed twice")));
            }
            list.push(value);
        }
        cases = cases.saturating_mul(list.len());
        if list.is_empty() {
            return Err(document.error(values.span(), format!("{} has no value", name.get_ref())));
        }
        if cases > MOST {
            let message = format!("more than {MOST} cases from one [[run]]");
            return Err(document.error(values.span(), message));
        }
        params.insert(name.get_ref().clone(), list);
    }
    Ok(params)
}

fn value(
    document: &Document<'_>,
    scalar: &Scalar,
    span: Range<usize>,
    name: &str,
    words: &[String],
) -> Result<Value, ParseError> {
    match scalar {
        Scalar::Text(word) if words.contains(word) => Ok(Value::Word(word.clone())),
        Scalar::Text(word) if !words.is_empty() => {
            Err(document.unknown(span, &format!("word for {name}"), word, words.iter().map(String::as_str)))
        }
        Scalar::Text(text) => {
            let size =
                document.quantity(&Spanned::new(span.clone(), text.clone()), name, Unit::Byte, 1.0..=2f64.powi(50))?;
            if size.fract() != 0.0 {
                return Err(document.error(span, format!("{name} is not a whole number of bytes")));
            }
            Ok(Value::Size(size as u64))
        }
        Scalar::Int(n) if !words.is_empty() => {
            Err(document.unknown(span, &format!("word for {name}"), &n.to_string(), words.iter().map(String::as_str)))
        }
        Scalar::Int(n) => match u32::try_from(*n) {
            Ok(n) if n > 0 => Ok(Value::Int(u64::from(n))),
            _ => Err(document
                .error(span, format!("{name} must be between 1 and {}, not {n}", u32::MAX))
                .with_help("sizes are written with their unit, e.g. \"4 GiB\"")),
        },
    }
}

fn demands(document: &Document<'_>, file: &SuiteFile, vocabulary: &Vocabulary) -> Result<Vec<Demand>, ParseError> {
    if let Some(one) = file.demand.get(MOST) {
        return Err(document.error(one.id.span(), format!("more than {MOST} [[demand]] in one suite")));
    }
    let mut seen = HashSet::new();
    file.demand
        .iter()
        .map(|line| {
            let demand = demand(document, line, vocabulary)?;
            if !seen.insert(demand.id.clone()) {
                return Err(document.error(line.id.span(), format!("demand {:?} exists already", demand.id)));
            }
            Ok(demand)
        })
        .collect()
}

fn demand(document: &Document<'_>, line: &DemandFile, vocabulary: &Vocabulary) -> Result<Demand, ParseError> {
    let (subject, entry) = subject(document, line, vocabulary)?;
    let rule = *line.limit.get_ref();
    let gate = *line.class.get_ref() == ClassFile::Gate;
    if gate && matches!(rule, LimitRule::Peers | LimitRule::SameRun) {
        let message = "a comparison with peers or with the same run never decides: class must be \"graded\"";
        return Err(document.error(line.class.span(), message));
    }
    let cap = line.cap.as_ref().map(|c| document.quantity(c, "cap", Unit::Ratio, 0.0001..=1.0)).transpose()?;
    Ok(Demand {
        id: document.identifier(&line.id, "id")?,
        subject,
        filter: document.conditions(&line.filter, &[], entry)?,
        on: line.on.unwrap_or(DeviceFilter::Any),
        limit: rule,
        gate,
        cap: cap.unwrap_or(0.01),
        why: document.text(&line.why, "why")?,
        line: document.line(line.id.span()),
    })
}

/// What a demand looks at; correctness and completeness are about cases, all other limits about a metric.
fn subject<'v>(
    document: &Document<'_>,
    line: &DemandFile,
    vocabulary: &'v Vocabulary,
) -> Result<(Subject, &'v VocabularyEntry), ParseError> {
    let about_cases = matches!(line.limit.get_ref(), LimitRule::Correct | LimitRule::Complete);
    match (&line.benchmark, &line.metric) {
        (Some(id), None) if about_cases => {
            let entry = document.benchmark(id, vocabulary)?;
            Ok((Subject::Benchmark(entry.id.clone()), entry))
        }
        (None, Some(id)) if !about_cases => {
            let (entry, _, _) = document.metric(id, vocabulary)?;
            Ok((Subject::Metric(id.get_ref().clone()), entry))
        }
        (Some(_), Some(both)) => {
            Err(document.error(both.span(), "a demand is about a metric or about a benchmark, not both"))
        }
        _ if about_cases => {
            Err(document.error(line.limit.span(), "this limit is about cases: name a benchmark, not a metric"))
        }
        _ => Err(document.error(line.limit.span(), "this limit compares values: name a metric, not a benchmark")),
    }
}
