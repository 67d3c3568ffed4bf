//! All workers of a run: one per device set and role, kept between cases, each request with a deadline in real
//! time.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::backend::Reading;
use crate::measure::clock::SupervisorClock;
use crate::measure::process::{Ended, Heard, Launcher, Process};
use crate::measure::protocol::{Answer, Message, Reply, Request};
use crate::measure::signals::{self, Urgency};
use crate::record::{CaseError, CaseErrorKind, DeviceId};
use crate::unit::Seconds;

/// How long a worker may take, in real time also where devices are simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deadlines {
    /// Times the plan's estimate …
    pub factor: f64,
    /// … plus this.
    pub floor: Seconds,
}

impl Deadlines {
    /// Generous: a deadline tells a hang from work, not slow from fast.
    pub const USUAL: Deadlines = Deadlines { factor: 5.0, floor: Seconds(20.0) };

    fn of(&self, estimate: Seconds) -> Duration {
        Seconds(self.factor * estimate.get() + self.floor.get()).duration()
    }
}

/// Which worker: its device set, and whether it plays the neighbour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Device set.
    pub devices: Vec<DeviceId>,
    /// Neighbour?
    pub aggressor: bool,
}

/// Why a worker did not answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Lost {
    /// It missed its deadline and was killed; if it did not die, it was abandoned.
    Hang {
        /// time it had
        after: Duration,
        /// it could not be killed
        abandoned: bool,
    },
    /// It ended.
    Crash(String),
    /// The user wants to end now.
    Interrupted,
}

impl Lost {
    /// As the record states it, while doing `what`.
    pub fn case_error(&self, what: &str) -> CaseError {
        let (kind, message) = match self {
            Lost::Hang { after, .. } => {
                (CaseErrorKind::Hang, format!("no answer within {:.1} s while {what}", after.as_secs_f64()))
            }
            Lost::Crash(ended) => (CaseErrorKind::Crash, format!("the worker ended while {what}: {ended}")),
            Lost::Interrupted => (CaseErrorKind::Internal, format!("interrupted while {what}")),
        };
        CaseError { kind, message }
    }
}

struct Worker {
    serial: u64,
    process: Process,
    /// Deadline of the outstanding request and the time it was given.
    deadline: Option<(Instant, Duration)>,
    /// Answer that nobody has asked for yet.
    answer: Option<Result<Reply, Lost>>,
    /// Its stdout ended: every further request fails.
    closed: bool,
}

/// The workers.
pub struct Fleet {
    launcher: Launcher,
    deadlines: Deadlines,
    /// Where simulated time begins, in every process of the run alike; `None` on the real clock.
    epoch: Option<u64>,
    workers: BTreeMap<Key, Worker>,
    send: Sender<(u64, Heard)>,
    heard: Receiver<(u64, Heard)>,
    next_serial: u64,
    /// Readings that came with answers, not yet taken.
    pub readings: Vec<Reading>,
}

impl Fleet {
    /// None yet.
    pub fn new(launcher: Launcher, deadlines: Deadlines, epoch: Option<u64>) -> Fleet {
        let (send, heard) = channel();
        Fleet {
            launcher,
            deadlines,
            epoch,
            workers: BTreeMap::new(),
            send,
            heard,
            next_serial: 1,
            readings: Vec::new(),
        }
    }

    /// Is this worker running?
    pub fn has(&self, key: &Key) -> bool {
        self.workers.contains_key(key)
    }

    /// Starts a worker; nothing is sent to it yet.
    pub fn start(&mut self, key: &Key) -> Result<(), Lost> {
        let serial = self.next_serial;
        self.next_serial += 1;
        let process = Process::start(&self.launcher, "worker", self.epoch, serial, self.send.clone())
            .map_err(|e| Lost::Crash(format!("it cannot be started: {e}")))?;
        self.workers.insert(key.clone(), Worker { serial, process, deadline: None, answer: None, closed: false });
        Ok(())
    }

    /// Sends a request that is planned to take `estimate`; the answer comes from [`Fleet::wait`].
    pub fn send(&mut self, key: &Key, request: Request, estimate: Seconds, clock: &SupervisorClock) {
        let Some(worker) = self.workers.get_mut(key) else { return };
        let has_answer = request != Request::Stop;
        let message = Message { now: clock.now(), request };
        if has_answer {
            let allowed = self.deadlines.of(estimate);
            worker.deadline = Some((Instant::now() + allowed, allowed));
            worker.answer = worker.closed.then(|| Err(Lost::Crash(String::new())));
        }
        // A failed write means that it ended: its `Closed` is on the way and becomes the answer.
        if let Ok(line) = serde_json::to_string(&message) {
            let _ = worker.process.send(&line);
        }
    }

    /// Waits until each of `keys` has answered its request or is lost. A worker that is lost is gone: killed,
    /// and forgotten. Never waits longer than the deadlines.
    pub fn wait(&mut self, keys: &[Key], clock: &mut SupervisorClock) -> Vec<Result<Reply, Lost>> {
        while keys.iter().any(|k| self.workers.get(k).is_some_and(|w| w.answer.is_none())) {
            match self.heard.recv_timeout(self.patience()) {
                Ok((serial, heard)) => self.hear(serial, heard, clock),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.check_deadlines();
        }
        keys.iter().map(|key| self.take_answer(key)).collect()
    }

    fn take_answer(&mut self, key: &Key) -> Result<Reply, Lost> {
        let missing = || Err(Lost::Crash("it is not running".to_owned()));
        let answer = self.workers.get_mut(key).and_then(|w| w.answer.take()).unwrap_or_else(missing);
        let Err(lost) = answer else { return answer };
        let Some(Worker { process, .. }) = self.workers.remove(key) else { return Err(lost) };
        Err(match lost {
            // It is ending by itself: killing it at once would hide how.
            Lost::Crash(words) if words.is_empty() => {
                Lost::Crash(process.finish().map_or("it does not end".to_owned(), |e| e.to_string()))
            }
            Lost::Hang { after, .. } => Lost::Hang { after, abandoned: process.kill().is_none() },
            lost => {
                process.kill();
                lost
            }
        })
    }

    /// Until the next deadline, but short enough to notice a signal.
    fn patience(&self) -> Duration {
        let now = Instant::now();
        let waiting = self.workers.values().filter(|w| w.answer.is_none()).filter_map(|w| w.deadline);
        let next = waiting.map(|(at, _)| at.saturating_duration_since(now)).min();
        next.unwrap_or(Duration::MAX).min(Duration::from_millis(50))
    }

    fn hear(&mut self, serial: u64, heard: Heard, clock: &mut SupervisorClock) {
        let Some(worker) = self.workers.values_mut().find(|w| w.serial == serial) else {
            return; // the last words of one that is gone
        };
        match heard {
            Heard::Line(line) => match serde_json::from_str::<Answer>(&line) {
                Ok(answer) => {
                    clock.hear(answer.now);
                    self.readings.extend(answer.readings);
                    worker.answer = Some(Ok(answer.reply));
                }
                Err(error) => worker.answer = Some(Err(Lost::Crash(format!("it sent nonsense: {error}")))),
            },
            Heard::Closed => {
                if !matches!(worker.answer, Some(Ok(_))) {
                    worker.answer = Some(Err(Lost::Crash(String::new())));
                }
                worker.closed = true;
            }
        }
    }

    fn check_deadlines(&mut self) {
        let urgent = signals::urgency() == Urgency::Now;
        let now = Instant::now();
        for worker in self.workers.values_mut().filter(|w| w.answer.is_none()) {
            match worker.deadline {
                Some(_) if urgent => worker.answer = Some(Err(Lost::Interrupted)),
                Some((at, allowed)) if now >= at => {
                    worker.answer = Some(Err(Lost::Hang { after: allowed, abandoned: false }))
                }
                _ => {}
            }
        }
    }

    /// Ends a worker now. `None`: there was none, or it does not die and is abandoned.
    pub fn stop(&mut self, key: &Key) -> Option<Ended> {
        self.workers.remove(key)?.process.kill()
    }

    /// Ends all workers: asked first, killed after a moment.
    pub fn finish(&mut self) {
        for (_, worker) in std::mem::take(&mut self.workers) {
            worker.process.finish();
        }
    }
}
