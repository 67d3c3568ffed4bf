//! `normal`: each result of a record among published measurements of the same model and conditions.

use super::args::NormalArgs;
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::judge;
use crate::{report, spec};

/// Runs `normal`. Exit 0 also where nothing compares: this is context, no verdict.
pub fn normal(args: &NormalArgs) -> Result<Exit, CliError> {
    let (record, _) = inputs::record(&args.record)?;
    let (suite, offer) = inputs::recorded(&record)?;
    let assessment = judge::judge(&record, &suite, offer.as_ref(), spec::table());
    if args.json {
        output::stdout_json(&assessment.normal)?;
    } else {
        output::stdout(&report::normal(&record, &assessment, args.lang))?;
    }
    Ok(Exit::Accepted)
}
