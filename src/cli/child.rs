//! `child`: the processes that `run` starts.

use super::args::{ChildArgs, ChildCommand};
use super::error::CliError;
use super::output;
use crate::exit::Exit;
use crate::{backend, discover, measure};

/// Runs one child until its supervisor lets go.
pub fn child(args: &ChildArgs) -> Result<Exit, CliError> {
    match &args.command {
        ChildCommand::Worker { simulate } => Ok(measure::child::worker_main(simulate.as_deref())),
        ChildCommand::Telemetry { simulate } => Ok(measure::child::telemetry_main(simulate.as_deref())),
        ChildCommand::Discover { simulate, storage_dir } => {
            measure::child::end_with_supervisor();
            let backends = backend::all(simulate.as_deref()).map_err(CliError::usage)?;
            let options = discover::Options { storage: Some(storage_dir.clone()), ..discover::Options::default() };
            let inventory = discover::discover(&backends, &options);
            output::stdout_json(&inventory).map(|()| Exit::Accepted)
        }
    }
}
