//! The command line: one file per subcommand. Results go to stdout, progress and errors to stderr; the
//! verdict comes last; the exit code is the answer.

// This is the one place that talks to people directly; stdout still goes through `output`.
#![expect(clippy::print_stderr, reason = "progress and errors belong on stderr")]

mod args;
mod child;
mod devices;
mod doctor;
mod error;
mod explain;
mod inputs;
mod judge;
mod list;
mod normal;
mod offer;
mod output;
mod progress;
mod report;
mod run;
mod schema;
mod spec;

use clap::Parser;

pub use args::Cli;
use args::Command;
use error::CliError;

use crate::exit::Exit;

/// Parses the command line and runs the subcommand.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Accepted };
            // A closed pipe while printing help is not worth a word.
            let _ = error.print();
            return exit;
        }
    };
    // A panic is a bug of ours: its message is printed by the default hook, and the code says so.
    std::panic::catch_unwind(|| dispatch(cli.command).unwrap_or_else(CliError::report)).unwrap_or(Exit::Internal)
}

fn dispatch(command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Run(args) => run::run(*args),
        Command::Devices(args) => devices::devices(&args),
        Command::List(args) => list::list(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Spec(args) => spec::spec(&args),
        Command::Offer(args) => offer::offer(&args),
        Command::Judge(args) => judge::judge(&args),
        Command::Normal(args) => normal::normal(&args),
        Command::Report(args) => report::report(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Man => output::stdout(&args::man_page()).map(|()| Exit::Accepted),
        Command::Child(args) => child::child(&args),
    }
}
