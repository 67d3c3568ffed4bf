//! Quantities with dimensions: arithmetic that only type-checks where the dimensions agree, one way to
//! parse what people write, one way to print it.
//!
//! Rates and sizes in bytes are decimal ("3.35 TB/s", 1 GB = 10⁹ B); binary prefixes ("24 GiB") are used
//! for capacities. One fused multiply-add counts as two operations everywhere.

use std::fmt;
use std::ops::{Add, Div, Mul, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub f64);
        impl $name {
            /// The unit of the plain number inside.
            pub const UNIT: Unit = $unit;
            /// The plain number in the SI base unit.
            pub fn get(self) -> f64 {
                self.0
            }
        }
        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }
        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0 - other.0)
            }
        }
        impl Mul<f64> for $name {
            type Output = $name;
            fn mul(self, factor: f64) -> $name {
                $name(self.0 * factor)
            }
        }
        impl Div<f64> for $name {
            type Output = $name;
            fn div(self, divisor: f64) -> $name {
                $name(self.0 / divisor)
            }
        }
        impl Div for $name {
            type Output = f64;
            fn div(self, other: $name) -> f64 {
                self.0 / other.0
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = $name>>(iter: I) -> $name {
                $name(iter.map(|q| q.0).sum())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Quantity { value: self.0, unit: $unit }.fmt(f)
            }
        }
        impl FromStr for $name {
            type Err = ParseQuantityError;
            fn from_str(text: &str) -> Result<$name, ParseQuantityError> {
                let q: Quantity = text.parse()?;
                if q.unit == $unit {
                    Ok($name(q.value))
                } else {
                    Err(ParseQuantityError::Dimension { text: text.to_owned(), expected: $unit, found: q.unit })
                }
            }
        }
    };
}

quantity!(
    /// A duration in seconds.
    Seconds, Unit::Second);
quantity!(
    /// An amount of data in bytes.
    Bytes, Unit::Byte);
quantity!(
    /// Data rate in bytes per second.
    BytesPerSecond, Unit::BytePerSecond);
quantity!(
    /// A number of arithmetic operations; one fused multiply-add is two.
    Operations, Unit::Operation);
quantity!(
    /// Floating-point operations per second.
    FlopPerSecond, Unit::FlopPerSecond);
quantity!(
    /// Integer operations per second.
    OpPerSecond, Unit::OpPerSecond);
quantity!(
    /// Frequency in hertz.
    Hertz, Unit::Hertz);
quantity!(
    /// Power in watts.
    Watts, Unit::Watt);
quantity!(
    /// Temperature in degrees Celsius.
    Celsius, Unit::Celsius);
quantity!(
    /// A dimensionless ratio; 1.0 is 100 %.
    Ratio, Unit::Ratio);

impl Bytes {
    /// `n` × 2²⁰ bytes.
    pub const fn mib(n: u64) -> Bytes {
        Bytes((n << 20) as f64)
    }
    /// `n` × 2³⁰ bytes.
    pub const fn gib(n: u64) -> Bytes {
        Bytes((n << 30) as f64)
    }
    /// Whole bytes, for allocation; negative and NaN become 0.
    pub fn count(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for Bytes {
    fn from(n: usize) -> Bytes {
        Bytes(n as f64)
    }
}

impl Seconds {
    /// As a `Duration`; negative and NaN become zero.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::try_from_secs_f64(self.0.max(0.0)).unwrap_or_default()
    }
}

impl Div<Seconds> for Bytes {
    type Output = BytesPerSecond;
    fn div(self, t: Seconds) -> BytesPerSecond {
        BytesPerSecond(self.0 / t.0)
    }
}
impl Div<BytesPerSecond> for Bytes {
    type Output = Seconds;
    fn div(self, rate: BytesPerSecond) -> Seconds {
        Seconds(self.0 / rate.0)
    }
}
impl Mul<Seconds> for BytesPerSecond {
    type Output = Bytes;
    fn mul(self, t: Seconds) -> Bytes {
        Bytes(self.0 * t.0)
    }
}
impl Div<Seconds> for Operations {
    type Output = FlopPerSecond;
    fn div(self, t: Seconds) -> FlopPerSecond {
        FlopPerSecond(self.0 / t.0)
    }
}
impl Mul<Seconds> for FlopPerSecond {
    type Output = Operations;
    fn mul(self, t: Seconds) -> Operations {
        Operations(self.0 * t.0)
    }
}
impl Mul<Seconds> for Hertz {
    type Output = f64;
    fn mul(self, t: Seconds) -> f64 {
        self.0 * t.0
    }
}

/// The units in which values are stored. Files name them; the plain number is always in the base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// s
    Second,
    /// B
    Byte,
    /// B/s
    BytePerSecond,
    /// arithmetic operations (no time)
    Operation,
    /// FLOP/s
    FlopPerSecond,
    /// integer operations per second, OP/s
    OpPerSecond,
    /// input/output operations per second, 1/s
    IoPerSecond,
    /// Hz
    Hertz,
    /// W
    Watt,
    /// °C
    Celsius,
    /// dimensionless, 1 = 100 %
    Ratio,
    /// a count of things
    Count,
}

impl Unit {
    /// Symbol without prefix.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Byte => "B",
            Unit::BytePerSecond => "B/s",
            Unit::Operation => "OP",
            Unit::FlopPerSecond => "FLOP/s",
            Unit::OpPerSecond => "OP/s",
            Unit::IoPerSecond => "IOPS",
            Unit::Hertz => "Hz",
            Unit::Watt => "W",
            Unit::Celsius => "°C",
            Unit::Ratio => "%",
            Unit::Count => "",
        }
    }
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// In the base unit.
    pub value: f64,
    /// The base unit.
    pub unit: Unit,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParseQuantityError {
    /// No number at the start.
    #[error("\"{0}\" does not start with a number")]
    Number(String),
    /// A unit nobody knows.
    #[error("\"{unit}\" in \"{text}\" is not a unit known here (examples: 3.35 TB/s, 24 GiB, 989 TFLOP/s, 90 s)")]
    Unit {
        /// the whole text
        text: String,
        /// the part that is not a unit
        unit: String,
    },
    /// The unit is known but of another dimension.
    #[error("\"{text}\" is in {}, expected {}", found.symbol(), expected.symbol())]
    Dimension {
        /// the whole text
        text: String,
        /// the unit that was needed
        expected: Unit,
        /// the unit that was found
        found: Unit,
    },
}

const DECIMAL: [(&str, f64); 10] = [
    ("", 1.0),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("m", 1e-3),
    ("µ", 1e-6),
];

const BASES: [(&str, Unit, f64); 24] = [
    ("FLOP/s", Unit::FlopPerSecond, 1.0),
    ("FLOPS", Unit::FlopPerSecond, 1.0),
    ("FLOPs", Unit::FlopPerSecond, 1.0),
    ("OP/s", Unit::OpPerSecond, 1.0),
    ("OPS", Unit::OpPerSecond, 1.0),
    ("IOPS", Unit::IoPerSecond, 1.0),
    ("B/s", Unit::BytePerSecond, 1.0),
    ("bit/s", Unit::BytePerSecond, 0.125),
    ("bps", Unit::BytePerSecond, 0.125),
    ("b/s", Unit::BytePerSecond, 0.125),
    ("iB/s", Unit::BytePerSecond, 1.0),
    ("iB", Unit::Byte, 1.0),
    ("B", Unit::Byte, 1.0),
    ("Hz", Unit::Hertz, 1.0),
    ("W", Unit::Watt, 1.0),
    ("°C", Unit::Celsius, 1.0),
    ("C", Unit::Celsius, 1.0),
    ("seconds", Unit::Second, 1.0),
    ("sec", Unit::Second, 1.0),
    ("s", Unit::Second, 1.0),
    ("min", Unit::Second, 60.0),
    ("h", Unit::Second, 3600.0),
    ("OP", Unit::Operation, 1.0),
    ("%", Unit::Ratio, 0.01),
];

fn unit_factor(unit: &str) -> Option<(Unit, f64)> {
    if unit.is_empty() {
        return Some((Unit::Count, 1.0));
    }
    // Whole-word units first: "min" must not read as milli-"in", nor "h" need a prefix.
    if let Some(&(_, u, f)) = BASES.iter().find(|(s, _, _)| *s == unit && !s.starts_with('i')) {
        return Some((u, f));
    }
    if matches!(unit, "m") {
        return Some((Unit::Second, 60.0));
    }
    for (symbol, u, factor) in BASES {
        let Some(prefix) = unit.strip_suffix(symbol) else { continue };
        if symbol.starts_with('i') {
            let power = ["K", "M", "G", "T", "P"].iter().position(|p| *p == prefix || (prefix == "k" && *p == "K"));
            if let Some(power) = power {
                return Some((u, factor * 1024f64.powi(power as i32 + 1)));
            }
            continue;
        }
        if matches!(u, Unit::Celsius | Unit::Ratio) || matches!(symbol, "min" | "h" | "sec" | "seconds") {
            continue;
        }
        let scale = DECIMAL.iter().find(|(p, _)| *p == prefix && !prefix.is_empty());
        if let Some((_, scale)) = scale {
            return Some((u, factor * scale));
        }
        match (prefix, u) {
            ("n", Unit::Second) => return Some((u, 1e-9)),
            ("u" | "μ", Unit::Second) => return Some((u, 1e-6)),
            _ => {}
        }
    }
    None
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Quantity, ParseQuantityError> {
        let trimmed = text.trim();
        let end = trimmed
            .char_indices()
            .find(|&(i, c)| {
                let exponent = (c == 'e' || c == 'E')
                    && i > 0
                    && trimmed[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
                let sign = (c == '-' || c == '+') && (i == 0 || trimmed[..i].ends_with(['e', 'E']));
                !(c.is_ascii_digit() || c == '.' || exponent || sign)
            })
            .map_or(trimmed.len(), |(i, _)| i);
        let number: f64 = trimmed[..end].parse().map_err(|_| ParseQuantityError::Number(text.to_owned()))?;
        if !number.is_finite() {
            return Err(ParseQuantityError::Number(text.to_owned()));
        }
        let symbol = trimmed[end..].trim();
        let (unit, factor) = unit_factor(symbol)
            .ok_or_else(|| ParseQuantityError::Unit { text: text.to_owned(), unit: symbol.to_owned() })?;
        Ok(Quantity { value: number * factor, unit })
    }
}

/// `value` with three significant digits, without exponent.
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    // 9.996 rounds to "10.00": one digit too many after the carry.
    let digits = text.chars().filter(char::is_ascii_digit).collect::<String>();
    if decimals > 0 && digits.trim_start_matches('0').len() > 3 {
        return format!("{value:.*}", decimals - 1);
    }
    text
}

impl Quantity {
    /// The decimal prefix and factor that put `value` between 1 and 1000, where the unit takes prefixes.
    pub fn scale(self) -> (&'static str, f64) {
        let size = self.value.abs();
        match self.unit {
            Unit::Ratio => ("", 0.01),
            Unit::Celsius | Unit::Watt => ("", 1.0),
            Unit::Count if size < 1e6 => ("", 1.0),
            Unit::Second if size > 0.0 && size < 1.0 => match size {
                s if s < 0.9995e-6 => ("n", 1e-9),
                s if s < 0.9995e-3 => ("µ", 1e-6),
                _ => ("m", 1e-3),
            },
            Unit::Second => ("", 1.0),
            _ => {
                let steps = [("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
                steps.into_iter().find(|(_, f)| size >= f * 0.9995).unwrap_or(("", 1.0))
            }
        }
    }

    /// Written with a scale chosen for another value, so that a column shares one prefix.
    pub fn with_scale(self, (prefix, factor): (&'static str, f64)) -> String {
        let number = significant(self.value / factor);
        match self.unit {
            Unit::Count if prefix.is_empty() => number,
            unit => format!("{number} {prefix}{}", unit.symbol()),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.unit {
            Unit::Byte if self.value >= 1024.0 && is_binary_capacity(self.value) => binary(self.value),
            Unit::Second if self.value >= 120.0 => format!("{} min", significant(self.value / 60.0)),
            _ => self.with_scale(self.scale()),
        };
        f.pad(&text)
    }
}

/// Capacities that are whole in binary units print so ("24 GiB"); everything else prints decimal.
fn is_binary_capacity(bytes: f64) -> bool {
    bytes % 1024.0 == 0.0
}

fn binary(bytes: f64) -> String {
    let steps = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let (symbol, size) = steps.into_iter().find(|(_, size)| bytes >= *size as f64).unwrap_or(("B", 1));
    format!("{} {symbol}", significant(bytes / size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_people_write() {
        for (text, value, unit) in [
            ("3.35 TB/s", 3.35e12, Unit::BytePerSecond),
            ("24 GiB", 24.0 * (1u64 << 30) as f64, Unit::Byte),
            ("80GB", 80e9, Unit::Byte),
            ("989 TFLOP/s", 989e12, Unit::FlopPerSecond),
            ("312 TFLOPS", 312e12, Unit::FlopPerSecond),
            ("624 TOPS", 624e12, Unit::OpPerSecond),
            ("90s", 90.0, Unit::Second),
            ("2 min", 120.0, Unit::Second),
            ("2m", 120.0, Unit::Second),
            ("15 ms", 0.015, Unit::Second),
            ("100 ns", 1e-7, Unit::Second),
            ("400 Gbps", 5e10, Unit::BytePerSecond),
            ("100 Gbit/s", 1.25e10, Unit::BytePerSecond),
            ("1980 MHz", 1.98e9, Unit::Hertz),
            ("5 %", 0.05, Unit::Ratio),
            ("1e3 B", 1e3, Unit::Byte),
            ("71 kIOPS", 71e3, Unit::IoPerSecond),
            ("12", 12.0, Unit::Count),
        ] {
            let q: Quantity = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(q.unit, unit, "{text}");
            assert!((q.value / value - 1.0).abs() < 1e-12, "{text}: {}", q.value);
        }
    }

    #[test]
    fn refuses_nonsense_and_wrong_dimension() {
        for text in ["", "fast", "3 parsecs", "nan s", "inf B", "1e999 s", "--3 s", "3..5 s"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
        assert!(matches!("3 GB".parse::<Seconds>(), Err(ParseQuantityError::Dimension { .. })));
    }

    #[test]
    fn prints_three_digits_and_a_prefix() {
        assert_eq!(BytesPerSecond(3.352e12).to_string(), "3.35 TB/s");
        assert_eq!(Bytes::gib(24).to_string(), "24.0 GiB");
        assert_eq!(Bytes(80e9 + 1.0).to_string(), "80.0 GB");
        assert_eq!(FlopPerSecond(999.6e9).to_string(), "1.00 TFLOP/s");
        assert_eq!(Seconds(85e-9).to_string(), "85.0 ns");
        assert_eq!(Seconds(12.5).to_string(), "12.5 s");
        assert_eq!(Ratio(0.9317).to_string(), "93.2 %");
        assert_eq!(Quantity { value: 3.0, unit: Unit::Count }.to_string(), "3.00");
    }

    #[test]
    fn dimensions_combine() {
        let rate: BytesPerSecond = Bytes(1e9) / Seconds(0.5);
        assert_eq!(rate, BytesPerSecond(2e9));
        assert_eq!(rate * Seconds(2.0), Bytes(4e9));
        assert_eq!(Operations(4e9) / Seconds(2.0), FlopPerSecond(2e9));
    }
}
