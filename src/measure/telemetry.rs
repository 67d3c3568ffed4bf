//! Sensors: read by a child process of their own, so that a hung driver library costs readings and nothing else.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Reading};
use crate::measure::clock::monotonic;
use crate::measure::foreign::{Load, Scanner};
use crate::measure::process::{Heard, Launcher, Process};
use crate::record::BackendId;
use crate::unit::Seconds;

/// Between readings.
pub const INTERVAL: Seconds = Seconds(0.5);

/// Readings between two looks at foreign processes.
const SCAN_EVERY: u32 = 4;

/// Silence after which the child counts as hung. Opening a vendor library can take many seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the telemetry child is told, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whose sensors.
    pub backends: Vec<BackendId>,
    /// Whose children are ours.
    pub supervisor: u32,
    /// Between readings.
    pub interval: Seconds,
}

/// What the telemetry child says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum Says {
    /// Once, first: sensors that cannot be read.
    NotObservable {
        /// `source.sensor` → reason
        sensors: BTreeMap<String, String>,
    },
    /// At each interval.
    Readings {
        /// all sensors
        readings: Vec<Reading>,
        /// processes that are not ours
        foreign: Vec<Load>,
    },
}

/// The child: reads until its channel ends.
pub fn serve(settings: &Receiver<Settings>, mut out: impl Write, backends: &[Box<dyn Backend>]) -> std::io::Result<()> {
    let Ok(asked) = settings.recv() else { return Ok(()) };
    let chosen = backends.iter().filter(|b| asked.backends.contains(&b.id()));
    let mut sensors: Vec<_> = chosen.filter_map(|b| b.sensors()).collect();
    let unreadable = sensors.iter().flat_map(|s| s.not_observable()).collect();
    say(&mut out, &Says::NotObservable { sensors: unreadable })?;
    let mut scanner = Scanner::new(asked.supervisor);
    let start = Instant::now();
    for tick in 0u32.. {
        let now = monotonic();
        let mut readings: Vec<Reading> = sensors.iter_mut().flat_map(|s| s.read(now)).collect();
        readings.retain(|r| r.value.is_finite());
        let foreign = if tick.is_multiple_of(SCAN_EVERY) { scanner.scan(now) } else { Vec::new() };
        say(&mut out, &Says::Readings { readings, foreign })?;
        let next = start + asked.interval.duration() * (tick + 1);
        match settings.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
    Ok(())
}

fn say(out: &mut impl Write, says: &Says) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(says)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// The supervisor's side.
pub struct Watch {
    process: Option<Process>,
    heard: Receiver<(u64, Heard)>,
    last: Instant,
    /// Time between the real clock and the run's clock does not exist in simulated runs.
    keep_times: bool,
}

/// What was heard since the last look.
#[derive(Debug, Default)]
pub struct News {
    /// Sensors that cannot be read.
    pub not_observable: BTreeMap<String, String>,
    /// Readings.
    pub readings: Vec<Reading>,
    /// Processes that are not ours.
    pub foreign: Vec<Load>,
    /// The child is gone, for this reason.
    pub lost: Option<String>,
}

impl Watch {
    /// Starts the child; a failure is the reason that it gives no readings. `keep_times`: the run is on the real
    /// clock, so that the child's times mean something.
    pub fn start(launcher: &Launcher, settings: &Settings, keep_times: bool) -> Result<Watch, String> {
        let (send, heard): (Sender<(u64, Heard)>, _) = channel();
        let start = || -> std::io::Result<Process> {
            let mut process = Process::start(launcher, "telemetry", None, 0, send)?;
            process.send(&serde_json::to_string(settings)?)?;
            Ok(process)
        };
        let process = start().map_err(|e| format!("the telemetry process cannot be started: {e}"))?;
        Ok(Watch { process: Some(process), heard, last: Instant::now(), keep_times })
    }

    /// Everything heard since the last look; never waits. `now`: the run's clock.
    pub fn look(&mut self, now: u64) -> News {
        let mut news = News::default();
        while self.process.is_some() {
            match self.heard.try_recv() {
                Ok((_, Heard::Line(line))) => match serde_json::from_str(&line) {
                    Ok(says) => self.hear(says, now, &mut news),
                    Err(error) => self.lose(format!("the telemetry process sent nonsense: {error}"), &mut news),
                },
                Ok((_, Heard::Closed)) => self.lose(String::new(), &mut news),
                Err(_) if self.last.elapsed() > PATIENCE => {
                    let reason = format!("the telemetry process was silent for {} s", PATIENCE.as_secs());
                    self.lose(reason, &mut news);
                }
                Err(_) => break,
            }
        }
        news
    }

    fn hear(&mut self, says: Says, now: u64, news: &mut News) {
        self.last = Instant::now();
        match says {
            Says::NotObservable { sensors } => news.not_observable.extend(sensors),
            Says::Readings { mut readings, foreign } => {
                if !self.keep_times {
                    readings.iter_mut().for_each(|r| r.at = now);
                }
                news.readings.extend(readings);
                news.foreign.extend(foreign);
            }
        }
    }

    /// The child is of no more use. An empty reason: it ended by itself.
    fn lose(&mut self, reason: String, news: &mut News) {
        let ended = self.process.take().and_then(Process::kill);
        news.lost = Some(match ended {
            Some(ended) if reason.is_empty() => format!("the telemetry process ended: {ended}"),
            _ => reason,
        });
    }

    /// Ends the child.
    pub fn finish(mut self) {
        if let Some(process) = self.process.take() {
            process.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::FakeBackend;

    #[test]
    fn the_child_reads_until_its_channel_ends() {
        let (send, receive) = channel();
        let settings = Settings { backends: vec![BackendId::Host], supervisor: 0, interval: Seconds(0.0) };
        send.send(settings.clone()).expect("open");
        send.send(settings).expect("a second message ends it");
        let mut out = Vec::new();
        serve(&receive, &mut out, &[Box::new(FakeBackend)]).expect("writes to memory");
        let lines: Vec<Says> = out
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).expect("ours"))
            .collect();
        assert!(matches!(&lines[0], Says::NotObservable { sensors } if sensors.len() == 1), "{lines:?}");
        let Says::Readings { readings, .. } = &lines[1] else { panic!("{lines:?}") };
        assert_eq!(readings.len(), 1, "the reading that is not a number is left out");
    }
}
