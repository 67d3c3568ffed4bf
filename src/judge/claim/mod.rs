//! What the provider claims, against what the vendor publishes: true, true of something else, impossible, unknown. Claims
//! never set limits. Nothing here knows the text of any claim: numbers, units and words are read, and the figures
//! of the spec table explain them.

mod classify;
mod instance;
mod read;
#[cfg(test)]
mod tests;
mod thing;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use read::{About, Feature, Statement, read};
pub use thing::{Thing, thing};

use super::Message;
use crate::offer::Offer;
use crate::spec::{GpuSpec, InstanceTable, SpecTable};
use crate::unit::Quantity;

/// How a claim stands to the vendor's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It is what the vendor states.
    True,
    /// Only with 2:4 sparsity; dense it is less.
    TrueWithSparsity,
    /// Of another arithmetic type.
    TrueOfOtherType,
    /// Of other units, another accumulator or another way of counting.
    TrueOfOtherVariant,
    /// Of another model of the family.
    TrueOfSibling,
    /// Of one direction where both are meant, or the other way round.
    TrueOfOtherDirection,
    /// Of a package, board or node where one device is meant, or the other way round.
    TrueOfPackage,
    /// No figure is that high.
    Impossible,
    /// The offer, or the instance type it names, says otherwise.
    Contradicted,
    /// The vendor's figures do not say.
    Unknown,
}

impl Class {
    /// Order from what holds to what does not.
    pub fn gravity(self) -> u8 {
        match self {
            Class::True => 0,
            Class::Unknown => 1,
            Class::TrueWithSparsity
            | Class::TrueOfOtherType
            | Class::TrueOfOtherVariant
            | Class::TrueOfSibling
            | Class::TrueOfOtherDirection
            | Class::TrueOfPackage => 2,
            Class::Impossible | Class::Contradicted => 3,
        }
    }

    /// True if the claim does not hold of what was sold.
    pub fn is_false(self) -> bool {
        self.gravity() >= 2
    }

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::True => "true",
            Class::TrueWithSparsity => "true_with_sparsity",
            Class::TrueOfOtherType => "true_of_other_type",
            Class::TrueOfOtherVariant => "true_of_other_variant",
            Class::TrueOfSibling => "true_of_sibling",
            Class::TrueOfOtherDirection => "true_of_other_direction",
            Class::TrueOfPackage => "true_of_package",
            Class::Impossible => "impossible",
            Class::Contradicted => "contradicted",
            Class::Unknown => "unknown",
        }
    }
}

/// One claim of an offer, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedClaim {
    /// As the provider wrote it (hostile text).
    pub text: String,
    /// Line in the offer; 0 where it is not known.
    pub line: usize,
    /// That of its first statement that is false; else unknown if any is, or if there is none; else true.
    pub class: Class,
    /// Each number in it.
    pub statements: Vec<CheckedStatement>,
}

/// One number of a claim, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedStatement {
    /// The number.
    pub value: Quantity,
    /// How it stands.
    pub class: Class,
    /// Why, in words.
    pub message: Message,
}

/// Checks every claim of an offer against the figures of the model it names.
pub fn check(offer: &Offer, table: &SpecTable) -> Vec<CheckedClaim> {
    let models = offer.model.as_deref().map_or_else(Vec::new, |m| table.fitting(m));
    let judge = |c: &crate::offer::Claim| {
        let mut statements = judge_text(&c.text, &models, offer.count, table);
        statements.extend(missing_features(&c.text, &models));
        statements.extend(thing::statements(&c.text, offer, &models, table));
        CheckedClaim { text: c.text.clone(), line: c.line, class: worst(&statements), statements }
    };
    let mut checked: Vec<CheckedClaim> = offer.claims.iter().map(judge).collect();
    // The size that the offer states is a statement like any other.
    if let Some((memory, false)) = offer.memory.map(|m| (m, models.is_empty())) {
        let text = format!("{} GB GPU memory", memory.0 / 1e9);
        let statements = judge_text(&text, &models, None, table);
        let line = offer.lines.get("gpu.memory").copied().unwrap_or(0);
        checked.insert(0, CheckedClaim { class: worst(&statements), text, line, statements });
    }
    checked
}

/// As [`check`], and the offer's tables against the instance type that it names.
pub fn check_all(offer: &Offer, table: &SpecTable, instances: &InstanceTable) -> Vec<CheckedClaim> {
    let mut all = instance::check(offer, table, instances);
    all.extend(check(offer, table));
    all
}

/// Features that none of the models has.
fn missing_features(text: &str, models: &[&GpuSpec]) -> Vec<CheckedStatement> {
    let lacks = |feature: &Feature| {
        !models.is_empty()
            && models.iter().all(|gpu| match feature {
                Feature::PeerLink => gpu.peer_link.is_none(),
                // "HBM2e" in a spec file is "HBM2e"; a type nobody stated contradicts nothing.
                Feature::MemoryType(t) => gpu.memory_type.as_ref().is_some_and(|own| !own.eq_ignore_ascii_case(t)),
            })
    };
    let none = Quantity { value: 0.0, unit: crate::unit::Unit::Count };
    let missing = read::features(text).into_iter().filter(lacks).zip(models.iter().cycle());
    let judged = |(feature, gpu): (Feature, &&GpuSpec)| {
        let message = match feature {
            Feature::PeerLink => Message::new("claim.no_link").with("model", gpu.name.as_str()),
            Feature::MemoryType(t) => Message::new("claim.memory_type")
                .with("what", t)
                .with("model", gpu.name.as_str())
                .with("right", gpu.memory_type.as_deref().unwrap_or("–")),
        };
        CheckedStatement { value: none, class: Class::Impossible, message }
    };
    missing.map(judged).collect()
}

/// The class of a claim from those of its statements.
fn worst(statements: &[CheckedStatement]) -> Class {
    let first = |wanted: fn(Class) -> bool| statements.iter().map(|s| s.class).find(|c| wanted(*c));
    match first(Class::is_false) {
        Some(class) => class,
        None if statements.is_empty() => Class::Unknown,
        None => first(|c| c == Class::Unknown).unwrap_or(Class::True),
    }
}

/// Every statement of `text` about one of `models`; where several fit the offer's name, the kindest of them counts.
pub fn judge_text(text: &str, models: &[&GpuSpec], count: Option<u32>, table: &SpecTable) -> Vec<CheckedStatement> {
    let judge = |statement: Statement| {
        let all = models.iter().map(|gpu| classify::classify(&statement, &classify::Against { gpu, table, count }));
        let unknown = || (Class::Unknown, Message::new("claim.no_model"));
        let (class, message) = all.min_by_key(|(class, _)| class.gravity()).unwrap_or_else(unknown);
        CheckedStatement { value: statement.value, class, message }
    };
    read(text).into_iter().map(judge).collect()
}
