//! Rendering: an assessment and its record become HTML, JSON and terminal text. Nothing is decided here.
//!
//! ```text
//! Record + Assessment ─► view (strings made once) ─► section/*.rs ─► report-templates/ ─► HTML
//! ```
//!
//! Adding a section is a file in `section/` with its template and a line in [`section::SECTIONS`]; adding a format is
//! a file here and a line in [`FORMATS`].

pub mod chart;
mod figure;
mod html;
mod json;
mod locale;
mod reading;
pub mod section;
mod terminal;
mod text;
mod view;

pub use html::html;
pub use json::json;
pub use locale::{Catalogue, Lang, placeholders};
pub use terminal::{normal, terminal};
pub use text::clean;

use crate::judge::Assessment;
use crate::record::Record;

/// What the method section says about one benchmark, handed in by the caller from the benchmark's own documentation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MethodText<'a> {
    /// Benchmark id.
    pub id: &'a str,
    /// A few words.
    pub title: &'a str,
    /// What it measures.
    pub measures: &'a str,
    /// Why a renter cares.
    pub why: &'a str,
    /// How, step by step.
    pub method: &'a str,
    /// What it does not show.
    pub limits: &'a str,
}

/// What every format is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What happened.
    pub record: &'a Record,
    /// What it means.
    pub assessment: &'a Assessment,
    /// Language of texts for people.
    pub lang: Lang,
    /// Texts for the method section.
    pub methods: &'a [MethodText<'a>],
    /// ANSI colours, where the format has them.
    pub colour: bool,
    /// Columns of the terminal.
    pub width: usize,
}

/// One way to write a result.
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// Name of the file in the run's folder; `None` for what only goes to a terminal.
    pub file: Option<&'static str>,
    /// Writes it.
    pub render: fn(&Input) -> Result<String, ReportError>,
}

/// Every format. A test checks that the names are unique.
pub const FORMATS: &[Format] = &[
    Format {
        name: "html",
        file: Some("report.html"),
        render: |input| html(input.record, input.assessment, input.lang, input.methods),
    },
    Format { name: "json", file: Some("assessment.json"), render: |input| json(input.assessment) },
    Format {
        name: "terminal",
        file: None,
        render: |input| Ok(terminal(input.record, input.assessment, input.lang, input.colour, input.width)),
    },
];

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template and its view do not fit together: a bug in this tool.
    #[error("report template: {0}")]
    Template(#[from] tera::Error),
    /// The assessment could not be serialised.
    #[error("assessment as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
