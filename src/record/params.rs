//! Parameters of a benchmark and the arithmetic types.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arithmetic types, by the names used in suites, figures and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataType {
    /// IEEE double.
    Fp64,
    /// IEEE single; never TF32.
    Fp32,
    /// TensorFloat-32 inputs, fp32 accumulate.
    Tf32,
    /// IEEE half.
    Fp16,
    /// bfloat16.
    Bf16,
    /// 8-bit float, E4M3.
    Fp8,
    /// Signed 8-bit integer, 32-bit accumulate.
    Int8,
    /// 4-bit float, E2M1.
    Fp4,
}

impl DataType {
    /// All, widest first.
    pub const ALL: [DataType; 8] = [
        DataType::Fp64,
        DataType::Fp32,
        DataType::Tf32,
        DataType::Fp16,
        DataType::Bf16,
        DataType::Fp8,
        DataType::Int8,
        DataType::Fp4,
    ];

    /// Name in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            DataType::Fp64 => "fp64",
            DataType::Fp32 => "fp32",
            DataType::Tf32 => "tf32",
            DataType::Fp16 => "fp16",
            DataType::Bf16 => "bf16",
            DataType::Fp8 => "fp8",
            DataType::Int8 => "int8",
            DataType::Fp4 => "fp4",
        }
    }

    /// Bytes of one input element (fp4 packs two in one byte and reports 1).
    pub fn size(self) -> usize {
        match self {
            DataType::Fp64 => 8,
            DataType::Fp32 | DataType::Tf32 => 4,
            DataType::Fp16 | DataType::Bf16 => 2,
            DataType::Fp8 | DataType::Int8 | DataType::Fp4 => 1,
        }
    }

    /// True for types whose rate is in OP/s rather than FLOP/s.
    pub fn is_integer(self) -> bool {
        self == DataType::Int8
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DataType {
    type Err = String;
    fn from_str(text: &str) -> Result<DataType, String> {
        DataType::ALL
            .into_iter()
            .find(|t| t.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("\"{text}\" is not an arithmetic type"))
    }
}

/// The value of one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A whole number, e.g. a matrix size or a queue depth.
    Int(u64),
    /// A size in bytes.
    Size(u64),
    /// A word, e.g. a data type or a direction.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Size(n) => crate::unit::Bytes(*n as f64).fmt(f),
            Value::Word(w) => f.write_str(w),
        }
    }
}

/// Parameters of one case, by name. The order is alphabetical and part of the case's id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Params(pub BTreeMap<String, Value>);

impl Params {
    /// Adds or replaces one; for building in tests and plans.
    pub fn with(mut self, name: &str, value: Value) -> Params {
        self.0.insert(name.to_owned(), value);
        self
    }
    /// The word called `name`.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Word(w)) => Some(w),
            _ => None,
        }
    }
    /// The whole number or size called `name`.
    pub fn int(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            Some(Value::Int(n) | Value::Size(n)) => Some(*n),
            _ => None,
        }
    }
    /// The parameter `type` as an arithmetic type.
    pub fn data_type(&self) -> Option<DataType> {
        self.word("type").and_then(|w| w.parse().ok())
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match value {
                Value::Size(n) => write!(f, "{comma}{name}={n}")?,
                value => write!(f, "{comma}{name}={value}")?,
            }
        }
        Ok(())
    }
}
