//! `report`: renders a saved record.

use super::args::{Format, ReportArgs};
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::judge::{self, Assessment};
use crate::record::Record;
use crate::report::{self, Lang, MethodText};
use crate::{benchmark, spec};

/// Runs `report`.
pub fn report(args: &ReportArgs) -> Result<Exit, CliError> {
    let (record, path) = inputs::record(&args.record)?;
    output::refuse_input(&args.output, &[&path])?;
    let (suite, offer) = inputs::recorded(&record)?;
    let assessment = judge::judge(&record, &suite, offer.as_ref(), spec::table());
    let text = match args.format {
        Format::Html => html(&record, &assessment, args.lang)?,
        Format::Json => output::json(&assessment)?,
        Format::Terminal => report::terminal(&record, &assessment, args.lang, false, 100),
    };
    if args.output.as_os_str() == "-" {
        output::stdout(&text)?;
    } else {
        output::write_atomically(&args.output, &text)?;
    }
    Ok(Exit::Accepted)
}

/// The HTML page, with the method texts of the benchmarks that the record used.
pub fn html(record: &Record, assessment: &Assessment, lang: Lang) -> Result<String, CliError> {
    let used = |id: &str| record.plan.cases.iter().any(|c| c.benchmark == id);
    let methods: Vec<MethodText<'_>> = benchmark::ALL
        .iter()
        .map(|b| b.meta())
        .filter(|m| used(m.id))
        .map(|m| MethodText {
            id: m.id,
            title: m.title,
            measures: m.measures,
            why: m.why,
            method: m.method,
            limits: m.limits,
        })
        .collect();
    report::html(record, assessment, lang, &methods)
        .map_err(|e| CliError::new(Exit::Internal, format_args!("cannot render the report: {e}")))
}
