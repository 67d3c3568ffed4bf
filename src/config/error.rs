//! A complaint about a hand-written file, with its place.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, SourceCode};

/// Files with lines longer than this are not shown with an error.
const LONGEST_LINE: usize = 400;
/// Longest name for which neighbours are looked up.
const LONGEST_NAME: usize = 64;

/// Why a file was refused. `Display` is one line with the place; as a [`miette::Diagnostic`] it shows the
/// line with a caret and help.
#[derive(Debug)]
pub struct ParseError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: String,
    message: String,
    help: Option<String>,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    span: Range<usize>,
    line: usize,
    column: usize,
    source: Option<String>,
}

impl ParseError {
    /// About the file as a whole.
    pub(super) fn whole(file: &str, message: String) -> ParseError {
        ParseError(Box::new(Inner { file: printable(file), message, help: None, place: None }))
    }

    /// About bytes `span` of `text`.
    pub(super) fn at(file: &str, text: &str, span: Range<usize>, message: String) -> ParseError {
        let span = clamp(text, span);
        let (line, column) = place(text, span.start);
        let file = printable(file);
        let source = text.lines().all(|line| line.len() <= LONGEST_LINE).then(|| printable(text));
        ParseError(Box::new(Inner { file, message, help: None, place: Some(Place { span, line, column, source }) }))
    }

    /// From the TOML reader; names that do not exist get their neighbours as help.
    pub(super) fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> ParseError {
        let message = error.message().trim().replace('\n', "; ");
        let short: String = message.chars().take(300).collect::<String>().replace("unknown variant", "unknown word");
        let (short, help) = match expected_names(&short) {
            Some((head, name, known)) => (head.to_owned(), Some(nearest(name, &known))),
            None => (short, None),
        };
        let made = match error.span() {
            Some(span) => ParseError::at(file, text, span, printable(&short)),
            None => ParseError::whole(file, printable(&short)),
        };
        match help {
            Some(help) => made.with_help(help),
            None => made,
        }
    }

    /// Adds help; empty help is none.
    pub fn with_help(mut self, help: impl Into<String>) -> ParseError {
        let help: String = help.into();
        self.0.help = (!help.is_empty()).then(|| printable(&help));
        self
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Line and column from 1, where the complaint has a place.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.0.place.as_ref().map(|p| (p.line, p.column))
    }

    /// Bytes of the file it is about.
    pub fn span(&self) -> Option<Range<usize>> {
        self.0.place.as_ref().map(|p| p.span.clone())
    }

    /// What to do.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { file, message, place, .. } = &*self.0;
        match place {
            Some(p) => write!(f, "{file}:{}:{}: {message}", p.line, p.column),
            None => write!(f, "{file}: {message}"),
        }
    }
}

impl std::error::Error for ParseError {}

impl Diagnostic for ParseError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.place.as_ref().and_then(|p| p.source.as_ref()).map(|s| s as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.0.place.as_ref().filter(|p| p.source.is_some())?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(place.span.clone()))))
    }
}

/// Line and column of byte `at`, from 1; columns count characters.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..clamp(text, at..at).start];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// `span` moved onto character boundaries inside `text`.
fn clamp(text: &str, span: Range<usize>) -> Range<usize> {
    let floor = |i: usize| (0..=i.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    let start = floor(span.start);
    start..floor(span.end).max(start)
}

/// Text that cannot steer a terminal: control and direction characters become as many '?' as they have
/// bytes, so that places stay where they are.
fn printable(text: &str) -> String {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t' && c != '\r')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if steers(c) {
            out.extend(std::iter::repeat_n('?', c.len_utf8()))
        } else {
            out.push(c)
        }
        out
    })
}

/// Splits serde's "unknown field `x`, expected one of `a`, `b`" into head, name and names.
fn expected_names(message: &str) -> Option<(&str, &str, Vec<&str>)> {
    let (head, tail) = message.split_once(", expected ").filter(|(head, _)| head.starts_with("unknown "))?;
    let name = head.split('`').nth(1)?;
    Some((head, name, tail.split('`').skip(1).step_by(2).collect()))
}

/// Help for a name that does not exist: the nearest ones by edit distance, else all if they are few.
pub fn nearest(name: &str, known: &[&str]) -> String {
    let mut known: Vec<&str> = known.to_vec();
    known.sort_unstable();
    known.dedup();
    let mut close: Vec<(usize, &str)> = match name.len() {
        0..=LONGEST_NAME => known.iter().map(|k| (strsim::damerau_levenshtein(name, k), *k)).collect(),
        _ => Vec::new(),
    };
    close.retain(|(distance, k)| *distance <= 1 + name.len().max(k.len()) / 4);
    close.sort();
    let quoted = |names: &[&str]| names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", ");
    match close.len() {
        0 if known.is_empty() || known.len() > 16 => String::new(),
        0 => format!("known: {}", known.join(", ")),
        _ => {
            let names: Vec<&str> = close.iter().take(3).map(|(_, k)| *k).collect();
            format!("did you mean {}?", quoted(&names).replace(", ", " or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_near_by_come_first_and_few_names_are_all_listed() {
        assert_eq!(nearest("gemn", &["gemm", "fma_peak"]), "did you mean \"gemm\"?");
        assert_eq!(nearest("zzzzzz", &["gemm", "fma_peak"]), "known: fma_peak, gemm");
        assert_eq!(nearest(&"x".repeat(1 << 20), &["gemm"]), "known: gemm");
    }

    #[test]
    fn places_count_characters_and_never_leave_the_text() {
        assert_eq!(place("a\nbé c", 5), (2, 3));
        assert_eq!(place("", 99), (1, 1));
        assert_eq!(clamp("é", 1..9), 0..2);
    }

    #[test]
    fn text_cannot_steer_the_terminal() {
        let hostile = "a\u{1b}[31mb\u{202e}c\n";
        assert_eq!(printable(hostile), "a?[31mb???c\n");
        assert_eq!(printable(hostile).len(), hostile.len());
    }
}
