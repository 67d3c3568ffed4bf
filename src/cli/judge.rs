//! `judge`: a saved record, judged again with today's rules, another suite or another offer; no GPU time.

use std::path::Path;

use super::args::{FailOn, JudgeArgs};
use super::error::CliError;
use super::{inputs, output};
use crate::exit::Exit;
use crate::judge::{self, Assessment, Verdict};
use crate::record::{Record, RunEnd};
use crate::{report, spec};

/// Runs `judge`.
pub fn judge(args: &JudgeArgs) -> Result<Exit, CliError> {
    let (record, path) = inputs::record(&args.record)?;
    let (mut suite, mut offer) = inputs::recorded(&record)?;
    if let Some(name) = &args.suite {
        suite = inputs::suite(name)?;
    }
    if let Some(path) = &args.offer {
        offer = Some(inputs::offer(path)?);
    }
    if let Some(output) = &args.output {
        let given = args.offer.as_deref().into_iter().chain(args.suite.as_deref().map(Path::new));
        output::refuse_input(output, &given.chain([path.as_path()]).collect::<Vec<_>>())?;
    }
    let assessment = judge::judge(&record, &suite, offer.as_ref(), spec::table());
    if let Some(path) = &args.output {
        output::write_atomically(path, &output::json(&assessment)?)?;
    }
    print(&record, &assessment, &args.print)?;
    Ok(exit(assessment.verdict, args.fail_on))
}

/// Prints the verdict: JSON, one line, or the whole summary with the verdict last.
pub fn print(record: &Record, assessment: &Assessment, args: &super::args::PrintArgs) -> Result<(), CliError> {
    if args.json {
        return output::stdout_json(assessment);
    }
    let colour = output::colour(&std::io::stdout());
    let text = report::terminal(record, assessment, args.lang, colour, terminal_width());
    if args.quiet {
        return output::stdout(text.lines().last().unwrap_or_default());
    }
    output::stdout(&text)
}

/// Columns of the terminal; a file or pipe has no end of line to respect.
fn terminal_width() -> usize {
    let stdout = console::Term::stdout();
    match stdout.is_term() {
        true => stdout.size_checked().map_or(100, |(_, columns)| usize::from(columns)),
        false => 400,
    }
}

/// The exit code of a verdict.
pub fn exit(verdict: Verdict, fail_on: Option<FailOn>) -> Exit {
    match verdict {
        Verdict::Accepted => Exit::Accepted,
        Verdict::AcceptedWithReservations if fail_on == Some(FailOn::Reservations) => Exit::NotAccepted,
        Verdict::AcceptedWithReservations => Exit::Accepted,
        Verdict::Inconclusive => Exit::Inconclusive,
        Verdict::NotAccepted => Exit::NotAccepted,
    }
}

/// The exit code of a run: an interrupted one says so, whatever its partial evidence.
pub fn exit_of_run(end: RunEnd, verdict: Verdict, fail_on: Option<FailOn>) -> Exit {
    match end {
        RunEnd::Interrupted => Exit::Interrupted,
        RunEnd::Terminated => Exit::Terminated,
        RunEnd::Complete | RunEnd::Died => exit(verdict, fail_on),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_fail_only_when_asked() {
        assert_eq!(exit(Verdict::AcceptedWithReservations, None), Exit::Accepted);
        assert_eq!(exit(Verdict::AcceptedWithReservations, Some(FailOn::Reservations)), Exit::NotAccepted);
        assert_eq!(exit(Verdict::Inconclusive, Some(FailOn::Reservations)), Exit::Inconclusive);
    }

    #[test]
    fn an_interrupted_run_never_exits_0() {
        assert_eq!(exit_of_run(RunEnd::Interrupted, Verdict::Accepted, None), Exit::Interrupted);
        assert_eq!(exit_of_run(RunEnd::Terminated, Verdict::Accepted, None), Exit::Terminated);
    }
}
