//! Progress on stderr: a bar on a terminal, one line per finished case otherwise.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::output::printable;
use crate::event::{Event, Observer, Phase};
use crate::record::{CaseId, Notice};

/// Prints events for people.
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    done: BTreeSet<CaseId>,
    cases: usize,
}

impl Progress {
    /// For stderr; `quiet` prints nothing.
    pub fn new(quiet: bool) -> Progress {
        Progress { bar: None, quiet, done: BTreeSet::new(), cases: 0 }
    }

    fn line(&self, status: &str, text: &str) {
        if self.quiet {
            return;
        }
        let line = printable(&format!("{status:>12}  {text}"));
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    fn start_bar(&mut self, length: u64) {
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::new(length);
        if let Ok(style) = ProgressStyle::with_template("{prefix:>12}  {bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        self.bar = Some(bar);
    }
}

impl Observer for Progress {
    fn on(&mut self, event: &Event) {
        match event {
            Event::Selected { devices } => {
                for (id, name) in devices {
                    self.line("Device", &format!("{id}  {name}"));
                }
            }
            Event::Planned { cases, not_planned, estimate, budget } => {
                self.cases = *cases;
                let left_out = if *not_planned > 0 { format!(" · {not_planned} left out") } else { String::new() };
                self.line("Plan", &format!("{cases} cases · about {estimate} of {budget}{left_out}"));
            }
            Event::Phase { phase, planned } => {
                let name = match phase {
                    Phase::Discover => "Discover",
                    Phase::Prepare => "Prepare",
                    Phase::Burst => "Burst",
                    Phase::Soak => "Soak",
                    Phase::Rounds => "Measure",
                    Phase::Conclude => "Conclude",
                };
                self.line(name, &planned.map_or(String::new(), |p| format!("about {p}")));
                if *phase == Phase::Prepare {
                    self.start_bar(self.cases as u64);
                }
            }
            Event::Prepared { case } => {
                if let Some(bar) = &self.bar {
                    bar.set_prefix("Prepare");
                    bar.inc(1);
                    bar.set_message(printable(&case.to_string()));
                }
            }
            Event::Round { round, min, open } => {
                if let Some(bar) = &self.bar {
                    bar.set_prefix("Round");
                    bar.set_length(u64::from(*min).max(u64::from(*round) + 1));
                    bar.set_position(u64::from(*round) + 1);
                    bar.set_message(format!("{open} cases open"));
                }
            }
            Event::Block { case, value, .. } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(printable(&format!("{case}  {value}")));
                }
            }
            Event::CaseDone { case, value, error } => {
                self.done.insert(case.clone()); // one can still fail in its last check
                let result = match (value, error) {
                    (_, Some(error)) => error.message.clone(),
                    (Some((value, u)), None) => format!("{value} ± {:.1} %", u * 100.0),
                    (None, None) => "no result".to_owned(),
                };
                let word = if error.is_some() { "Failed" } else { "Measured" };
                self.line(word, &format!("({}/{}) {case}  {result}", self.done.len(), self.cases));
            }
            Event::Notice { notice } => self.line("Notice", &notice_text(notice)),
            Event::Finished { .. } => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
            }
        }
    }
}

fn notice_text(notice: &Notice) -> String {
    match notice {
        Notice::ForeignProcess { device, name, share } => {
            format!("{device}: process \"{name}\" uses {:.0} % of a core", share * 100.0)
        }
        Notice::DeviceChanged { device, before, after } => format!("{device} changed: {before} → {after}"),
        Notice::Abandoned { cases, doing } => {
            format!("a worker stopped answering while {doing}; {} cases lost", cases.len())
        }
        Notice::NoTelemetry { reason } => format!("no telemetry: {reason}"),
        Notice::BudgetSpent { cases } => format!("time is spent; {} cases below their precision", cases.len()),
        Notice::Resumed { rounds } => format!("continues an interrupted run after {rounds} rounds"),
    }
}
