//! Reading TOML that people write: every complaint names file, line and column and, where a name is
//! unknown, the nearest ones that exist. Suites and offers are built on it.

mod error;
mod words;

use std::fmt;
use std::ops::{Range, RangeInclusive};

use serde::de::DeserializeOwned;
pub use toml::Spanned;

pub use error::{ParseError, nearest};

use crate::unit::{Quantity, Unit};

/// Largest file that is read, in bytes.
pub const MAX_SIZE: usize = 1 << 20;
/// Longest text value, in bytes.
pub const MAX_TEXT: usize = 2000;

/// The bytes of a file as text. Errors: larger than [`MAX_SIZE`], not UTF-8.
pub fn decode<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, ParseError> {
    if bytes.len() > MAX_SIZE {
        return Err(too_large(name, bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        ParseError::whole(name, format!("not UTF-8 text: byte {} (line {line}) is not valid", e.valid_up_to()))
    })
}

fn too_large(name: &str, size: usize) -> ParseError {
    ParseError::whole(name, format!("{size} bytes are too much: such a file has at most {MAX_SIZE}"))
}

/// A file being read.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Document<'a> {
    /// Errors: larger than [`MAX_SIZE`].
    pub fn new(name: &'a str, text: &'a str) -> Result<Document<'a>, ParseError> {
        if text.len() > MAX_SIZE {
            return Err(too_large(name, text.len()));
        }
        Ok(Document { name, text })
    }

    /// The whole file as `T`, whose types carry `deny_unknown_fields`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ParseError> {
        toml::from_str(self.text).map_err(|e| ParseError::from_toml(self.name, self.text, &e))
    }

    /// A complaint about a place.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> ParseError {
        ParseError::at(self.name, self.text, span, message.into())
    }

    /// A complaint about a name that does not exist, with those that do.
    pub fn unknown<'n>(
        &self,
        span: Range<usize>,
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> ParseError {
        let known: Vec<&str> = known.into_iter().collect();
        self.error(span, format!("unknown {kind} {name:?}")).with_help(nearest(name, &known))
    }

    /// Line of a place, from 1.
    pub fn line(&self, span: Range<usize>) -> usize {
        error::place(self.text, span.start).0
    }

    /// A text that can be shown: not empty, at most [`MAX_TEXT`] bytes, no control characters.
    pub fn text(&self, value: &Spanned<String>, what: &str) -> Result<String, ParseError> {
        let text = value.get_ref();
        let problem = if text.trim().is_empty() {
            format!("{what} is empty")
        } else if text.len() > MAX_TEXT {
            format!("{what} has {} bytes, at most {MAX_TEXT} are shown", text.len())
        } else if text.chars().any(char::is_control) {
            format!("{what} holds a control character")
        } else {
            return Ok(text.clone());
        };
        Err(self.error(value.span(), problem))
    }

    /// An identifier: lower-case letters, digits, `-` and `_`, at most 64.
    pub fn identifier(&self, value: &Spanned<String>, what: &str) -> Result<String, ParseError> {
        let text = value.get_ref();
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if text.is_empty() || text.len() > 64 || !text.chars().all(legal) {
            let message = format!("{what} must be 1 to 64 lower-case letters, digits, '-' or '_'");
            return Err(self.error(value.span(), message));
        }
        Ok(text.clone())
    }

    /// A whole number in `range`.
    pub fn whole(&self, value: &Spanned<i64>, what: &str, range: RangeInclusive<u32>) -> Result<u32, ParseError> {
        u32::try_from(*value.get_ref()).ok().filter(|n| range.contains(n)).ok_or_else(|| {
            let message =
                format!("{what} must be between {} and {}, not {}", range.start(), range.end(), value.get_ref());
            self.error(value.span(), message)
        })
    }

    /// A quantity of `unit` in `range` (base units), written with its unit: "0.25 s", "4 GiB", "1 %".
    pub fn quantity(
        &self,
        value: &Spanned<String>,
        what: &str,
        unit: Unit,
        range: RangeInclusive<f64>,
    ) -> Result<f64, ParseError> {
        let q: Quantity = value
            .get_ref()
            .parse()
            .map_err(|e: crate::unit::ParseQuantityError| self.error(value.span(), e.to_string()))?;
        if q.unit != unit {
            let found = if q.unit == Unit::Count { "has no unit" } else { "is of another kind" };
            let message = format!("{what} {found}: {:?} is not in {}", value.get_ref(), unit.symbol());
            return Err(self.error(value.span(), message));
        }
        if !range.contains(&q.value) {
            let (low, high) = (Quantity { value: *range.start(), unit }, Quantity { value: *range.end(), unit });
            let message = format!("{what} must be between {low} and {high}, not {}", Shown(q));
            return Err(self.error(value.span(), message));
        }
        Ok(q.value)
    }
}

/// A quantity in an error message: extreme numbers in exponent form.
struct Shown(Quantity);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.value.abs() {
            x if x < 1e18 => self.0.fmt(f),
            _ => write!(f, "{:e} {}", self.0.value, self.0.unit.symbol()),
        }
    }
}

/// SHA-256 of a text, hexadecimal.
pub fn sha256(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}
