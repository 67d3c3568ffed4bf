//! `schema`: the published shape of the files.

use super::args::{SchemaArgs, SchemaOf};
use super::error::CliError;
use super::output;
use crate::exit::Exit;
use crate::judge::Assessment;
use crate::record::Record;

/// Runs `schema`.
pub fn schema(args: &SchemaArgs) -> Result<Exit, CliError> {
    let schema = match args.what {
        SchemaOf::Record => schemars::schema_for!(Record),
        SchemaOf::Assessment => schemars::schema_for!(Assessment),
        SchemaOf::Offer => crate::offer::schema(),
    };
    output::stdout_json(&schema).map(|()| Exit::Accepted)
}
