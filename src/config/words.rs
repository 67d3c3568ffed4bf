//! Names that a file refers to: benchmarks, metrics, parameters and their words.

use std::collections::BTreeMap;

use super::{Document, ParseError, Spanned};
use crate::record::{Better, Value, Vocabulary, VocabularyEntry};
use crate::unit::Unit;

/// Series labels that conditions may name beside the parameters of a benchmark.
const LABELS: [&str; 1] = ["percentile"];

impl Document<'_> {
    /// The benchmark that `id` names.
    pub fn benchmark<'v>(
        &self,
        id: &Spanned<String>,
        vocabulary: &'v Vocabulary,
    ) -> Result<&'v VocabularyEntry, ParseError> {
        vocabulary.benchmarks.iter().find(|b| b.id == *id.get_ref()).ok_or_else(|| {
            let known = vocabulary.benchmarks.iter().map(|b| b.id.as_str());
            self.unknown(id.span(), "benchmark", id.get_ref(), known)
        })
    }

    /// The metric that `id` names: its benchmark, unit and direction.
    pub fn metric<'v>(
        &self,
        id: &Spanned<String>,
        vocabulary: &'v Vocabulary,
    ) -> Result<(&'v VocabularyEntry, Unit, Better), ParseError> {
        vocabulary.metric(id.get_ref()).ok_or_else(|| {
            let known = vocabulary.benchmarks.iter().flat_map(|b| b.metrics.iter().map(|(m, _, _)| m.0.as_str()));
            self.unknown(id.span(), "metric", id.get_ref(), known)
        })
    }

    /// Conditions of a demand or guarantee: parameters of the benchmark with their words, or series labels. `others` are
    /// names that the caller has read already; they are only suggested.
    pub fn conditions<'f>(
        &self,
        file: impl IntoIterator<Item = (&'f Spanned<String>, &'f Spanned<String>)>,
        others: &[&str],
        entry: &VocabularyEntry,
    ) -> Result<BTreeMap<String, String>, ParseError> {
        let mut conditions = BTreeMap::new();
        for (name, word) in file {
            match entry.params.iter().find(|(known, _)| known == name.get_ref()) {
                Some((_, words)) if !words.is_empty() && !words.contains(word.get_ref()) => {
                    let kind = format!("word for {}", name.get_ref());
                    return Err(self.unknown(word.span(), &kind, word.get_ref(), words.iter().map(String::as_str)));
                }
                None if !LABELS.contains(&name.get_ref().as_str()) => {
                    let kind = format!("parameter or label of {}", entry.id);
                    let known = entry.params.iter().map(|(known, _)| known.as_str()).chain(LABELS);
                    let known = known.chain(others.iter().copied());
                    return Err(self.unknown(name.span(), &kind, name.get_ref(), known));
                }
                Some((_, words)) if words.is_empty() => {
                    conditions.insert(name.get_ref().clone(), self.number(name.get_ref(), word)?)
                }
                _ => conditions.insert(name.get_ref().clone(), self.text(word, "condition")?),
            };
        }
        Ok(conditions)
    }

    /// A number or size in a condition, written as the parameter itself is written in a report.
    fn number(&self, name: &str, word: &Spanned<String>) -> Result<String, ParseError> {
        if let Ok(n) = word.get_ref().parse::<u32>() {
            return Ok(Value::Int(u64::from(n)).to_string());
        }
        let size = self.quantity(word, name, Unit::Byte, 1.0..=2f64.powi(50))?;
        Ok(Value::Size(size as u64).to_string())
    }
}
