//! Requests to workers on behalf of cases, and what becomes of a case when one goes wrong.

use std::collections::BTreeMap;

use crate::event::Event;
use crate::measure::clock::between;
use crate::measure::journal::Entry;
use crate::measure::ledger::Account;
use crate::measure::progress::Standing;
use crate::measure::protocol::{Open, Reply, Request, When};
use crate::measure::supervisor::fleet::{Key, Lost};
use crate::measure::supervisor::schedule::has_aggressor;
use crate::measure::supervisor::{Facts, Supervisor};
use crate::measure::{MeasureError, identity};
use crate::record::{CaseError, CaseErrorKind, DeviceId, DeviceInfo, Notice};
use crate::unit::Seconds;

/// Planned time for starting a worker and opening its devices; vendor runtimes take seconds.
const OPEN: Seconds = Seconds(4.0);

/// Workers a device may lose before its remaining cases are given up.
const MOST_FAILURES: u32 = 2;

/// One request for one case.
pub(super) struct Ask {
    /// Index of the case.
    pub case: usize,
    /// To its neighbour instead of its own worker.
    pub aggressor: bool,
    /// What.
    pub request: Request,
    /// Planned time.
    pub estimate: Seconds,
}

impl Supervisor<'_> {
    pub(super) fn key(&self, case: usize, aggressor: bool) -> Key {
        Key { devices: self.cases[case].devices.clone(), aggressor }
    }

    /// Sends all requests at once, each to another worker, and waits for all answers. `None` for a case whose
    /// request went wrong; its outcome is settled then. `what`: for the error message.
    pub(super) fn ask(&mut self, asks: Vec<Ask>, what: &str) -> Result<Vec<Option<Reply>>, MeasureError> {
        let asked: Vec<(usize, bool)> = asks.iter().map(|a| (a.case, a.aggressor)).collect();
        let sent = self.dispatch(asks)?;
        let mut replies: BTreeMap<_, _> = sent.iter().copied().zip(self.wait(&sent, what)?).collect();
        Ok(asked.iter().map(|who| replies.remove(who).flatten()).collect())
    }

    /// Sends requests to their workers, which are started if needed. Returns those that were sent.
    fn dispatch(&mut self, asks: Vec<Ask>) -> Result<Vec<(usize, bool)>, MeasureError> {
        let who: Vec<(usize, bool)> = asks.iter().map(|a| (a.case, a.aggressor)).collect();
        let opened = self.open_workers(&who)?;
        let mut sent = Vec::new();
        for (ask, _) in asks.into_iter().zip(&opened).filter(|(_, open)| **open) {
            sent.push((ask.case, ask.aggressor));
            self.send(ask);
        }
        Ok(sent)
    }

    /// Sends one request to a worker that is open.
    pub(super) fn send(&mut self, ask: Ask) {
        let key = self.key(ask.case, ask.aggressor);
        self.fleet.send(&key, ask.request, ask.estimate, &self.clock);
    }

    /// Waits for the answers to [`Supervisor::send`].
    pub(super) fn wait(&mut self, who: &[(usize, bool)], what: &str) -> Result<Vec<Option<Reply>>, MeasureError> {
        let keys: Vec<Key> = who.iter().map(|&(case, aggressor)| self.key(case, aggressor)).collect();
        let answers = self.fleet.wait(&keys, &mut self.clock);
        let mut replies = Vec::with_capacity(answers.len());
        for ((&(case, _), key), answer) in who.iter().zip(&keys).zip(answers) {
            replies.push(self.settle(case, key, answer, what)?);
        }
        Ok(replies)
    }

    /// Starts the workers that are not running. `false` where that failed; the case is settled then.
    fn open_workers(&mut self, who: &[(usize, bool)]) -> Result<Vec<bool>, MeasureError> {
        let mut starting = Vec::new();
        let mut refused = Vec::new();
        for &(case, aggressor) in who {
            let key = self.key(case, aggressor);
            if self.fleet.has(&key) {
                continue;
            }
            match self.fleet.start(&key) {
                Ok(()) => {
                    self.fleet.send(&key, self.open_request(&key.devices, aggressor), OPEN, &self.clock);
                    starting.push((case, aggressor));
                }
                Err(lost) => {
                    self.settle(case, &key, Err(lost), "starting a worker")?;
                    refused.push((case, aggressor));
                }
            }
        }
        let replies = self.wait(&starting, "opening its devices")?;
        for (who, reply) in starting.into_iter().zip(replies) {
            match reply {
                Some(Reply::Opened { devices }) => self.compare_devices(&devices)?,
                _ => refused.push(who),
            }
        }
        self.charge(Account::Prepare);
        Ok(who.iter().map(|w| !refused.contains(w)).collect())
    }

    /// A device that is not what discovery saw is noted.
    fn compare_devices(&mut self, devices: &[DeviceInfo]) -> Result<(), MeasureError> {
        for now in devices {
            let Some(before) = self.progress.begin.record.inventory.device(&now.id) else { continue };
            let (before, after) = (identity::text(before), identity::text(now));
            let notice = Notice::DeviceChanged { device: now.id.clone(), before, after };
            let same = matches!(&notice, Notice::DeviceChanged { before, after, .. } if before == after);
            if !same && !self.progress.notices.contains(&notice) {
                self.notice(notice)?;
            }
        }
        Ok(())
    }

    /// Turns what went wrong into the outcome of the case; passes on what did not.
    fn settle(
        &mut self,
        case: usize,
        key: &Key,
        answer: Result<Reply, Lost>,
        what: &str,
    ) -> Result<Option<Reply>, MeasureError> {
        let id = self.cases[case].id.clone();
        match answer {
            Ok(Reply::Unsupported { reason }) => self.note(Entry::Unsupported { case: id, reason })?,
            Ok(Reply::Failed { error }) => self.case_failed(case, key, error)?,
            Ok(reply) => return Ok(Some(reply)),
            Err(Lost::Interrupted) => self.forget_worker(key),
            Err(lost) => {
                self.forget_worker(key);
                let error = lost.case_error(what);
                self.note(Entry::Failed { case: id.clone(), error: error.clone() })?;
                if matches!(lost, Lost::Hang { .. }) {
                    self.notice(Notice::Abandoned { cases: vec![id], doing: what.to_owned() })?;
                }
                self.count_failure(key, &error)?;
            }
        }
        Ok(None)
    }

    fn case_failed(&mut self, case: usize, key: &Key, error: CaseError) -> Result<(), MeasureError> {
        if error.kind == CaseErrorKind::DeviceLost {
            return self.device_lost(case, key, error);
        }
        let id = self.cases[case].id.clone();
        self.note(Entry::Failed { case: id, error: error.clone() })?;
        match error.kind {
            // A driver error can stick to the process: the other cases get a fresh one.
            CaseErrorKind::Driver | CaseErrorKind::Internal => self.stop_worker(key),
            // What it holds goes with the next eviction: its neighbour may be busy right now.
            _ => {}
        }
        Ok(())
    }

    /// Gone, or lost to one process only (a reset, an error that sticks to its context)? A fresh one decides: only a
    /// device that it cannot open is lost.
    fn device_lost(&mut self, case: usize, key: &Key, mut error: CaseError) -> Result<(), MeasureError> {
        self.stop_worker(key);
        let gone: Vec<DeviceId> = key.devices.iter().filter(|d| !self.opens_again(d)).cloned().collect();
        if gone.is_empty() {
            error.kind = CaseErrorKind::Driver;
            error.message = format!("the device was lost, and a new process could open it: {}", error.message);
        }
        self.note(Entry::Failed { case: self.cases[case].id.clone(), error: error.clone() })?;
        if gone.is_empty() {
            return self.count_failure(key, &error);
        }
        gone.iter().try_for_each(|device| self.give_up(device, &error, "the device was lost"))
    }

    /// Can a fresh process open the device and complete an empty queue on it?
    fn opens_again(&mut self, device: &DeviceId) -> bool {
        // Beside the device's own worker, which may still run if a set with this device in it failed.
        let key = Key { devices: vec![device.clone()], aggressor: true };
        self.stop_worker(&key);
        if self.fleet.start(&key).is_err() {
            return false;
        }
        self.fleet.send(&key, self.open_request(&key.devices, false), OPEN, &self.clock);
        let answers = self.fleet.wait(std::slice::from_ref(&key), &mut self.clock);
        self.stop_worker(&key);
        self.charge(Account::Prepare);
        matches!(answers.as_slice(), [Ok(Reply::Opened { .. })])
    }

    fn open_request(&self, devices: &[DeviceId], aggressor: bool) -> Request {
        Request::Open(Open {
            devices: devices.to_vec(),
            seed: self.progress.begin.record.run.seed,
            storage: self.progress.begin.storage.clone(),
            aggressor,
            virtual_time: self.clock.is_virtual(),
        })
    }

    fn count_failure(&mut self, key: &Key, error: &CaseError) -> Result<(), MeasureError> {
        for device in &key.devices {
            let failures = self.failures.entry(device.clone()).or_insert(0);
            *failures += 1;
            if *failures >= MOST_FAILURES {
                self.give_up(device, error, "its worker failed twice")?;
            }
        }
        Ok(())
    }

    /// Ends all open cases of a device: those with blocks have failed, the others were not run.
    fn give_up(&mut self, device: &DeviceId, error: &CaseError, why: &str) -> Result<(), MeasureError> {
        for case in 0..self.cases.len() {
            if !self.is_open(case) || !self.cases[case].devices.contains(device) {
                continue;
            }
            let id = self.cases[case].id.clone();
            let reason = format!("{device}: {why} ({})", error.message);
            if self.state(case).rounds.is_empty() {
                self.note(Entry::Skipped { case: id, reason })?;
            } else {
                self.note(Entry::Failed { case: id, error: CaseError { kind: error.kind, message: reason } })?;
            }
        }
        Ok(())
    }

    fn stop_worker(&mut self, key: &Key) {
        self.fleet.stop(key);
        self.forget_worker(key);
    }

    /// What a worker that is gone had prepared is prepared no more. A victim without its aggressor must prepare
    /// anew too: both belong together.
    fn forget_worker(&mut self, key: &Key) {
        for case in 0..self.cases.len() {
            if self.cases[case].devices == key.devices && (!key.aggressor || has_aggressor(&self.cases[case])) {
                self.memory.forget(case);
            }
        }
    }

    /// Prepares all cases of `group` that are open and not yet prepared, each with its check before. `evict`:
    /// make room for them if needed; otherwise those that do not fit are left for later.
    pub(super) fn prepare(&mut self, group: &[usize], evict: bool) -> Result<(), MeasureError> {
        let mut wanted = Vec::new();
        for &case in group {
            if self.memory.holds(case) || !self.is_open(case) {
                self.touch(case);
                continue;
            }
            while let Some(other) = self.memory.in_the_way(&self.cases, case, group).filter(|_| evict) {
                self.evict(other)?;
            }
            if self.memory.in_the_way(&self.cases, case, group).is_none() {
                self.memory.touch(case);
                wanted.push(case);
            }
        }
        self.charge(Account::Idle);
        self.prepare_on_workers(&wanted)?;
        self.charge(Account::Prepare);
        self.verify(&wanted, When::Before)
    }

    fn touch(&mut self, case: usize) {
        if self.memory.holds(case) {
            self.memory.touch(case);
        }
    }

    fn prepare_on_workers(&mut self, wanted: &[usize]) -> Result<(), MeasureError> {
        for aggressor in [false, true] {
            let concerned = |&&case: &&usize| self.is_open(case) && (!aggressor || has_aggressor(&self.cases[case]));
            let cases: Vec<usize> = wanted.iter().filter(concerned).copied().collect();
            let asks = cases.iter().map(|&case| self.ask_prepare(case, aggressor)).collect();
            let sent = self.dispatch(asks)?;
            let keys: Vec<Key> = sent.iter().map(|&(case, aggressor)| self.key(case, aggressor)).collect();
            let answers = self.fleet.wait(&keys, &mut self.clock);
            let mut ready = Vec::new();
            for ((case, _), answer) in sent.into_iter().zip(answers) {
                if let Some(Reply::Prepared(prepared)) = self.prepared_or_room(case, aggressor, answer)? {
                    ready.push(case);
                    if !aggressor {
                        self.facts.insert(case, Facts { prepared, verify: Seconds(0.0), aggressor: None });
                        self.observer.on(&Event::Prepared { case: self.cases[case].id.clone() });
                    }
                }
            }
            for case in cases.into_iter().filter(|c| !ready.contains(c)) {
                match aggressor {
                    true => self.release(case)?,
                    false => self.memory.forget(case),
                }
            }
        }
        Ok(())
    }

    /// Where memory ran out although it should have sufficed, other cases make room, and it is tried again.
    fn prepared_or_room(
        &mut self,
        case: usize,
        aggressor: bool,
        mut answer: Result<Reply, Lost>,
    ) -> Result<Option<Reply>, MeasureError> {
        let key = self.key(case, aggressor);
        let out_of_memory = |answer: &Result<Reply, Lost>| matches!(answer, Ok(Reply::Failed { error }) if error.kind == CaseErrorKind::OutOfMemory);
        while out_of_memory(&answer) && self.make_room(case)? {
            if self.dispatch(vec![self.ask_prepare(case, aggressor)])?.is_empty() {
                return Ok(None); // its worker was lost meanwhile, and the case settled
            }
            answer = self.fleet.wait(std::slice::from_ref(&key), &mut self.clock).remove(0);
        }
        self.settle(case, &key, answer, "preparing")
    }

    /// Learns that less fits than planned, and gives up the most recently used. `false` if nothing was left.
    fn make_room(&mut self, case: usize) -> Result<bool, MeasureError> {
        self.memory.shrink(&self.cases, case);
        let mut made = false;
        while let Some(other) = self.memory.in_the_way(&self.cases, case, &[case]) {
            self.evict(other)?;
            made = true;
        }
        Ok(made)
    }

    fn ask_prepare(&self, case: usize, aggressor: bool) -> Ask {
        let planned = &self.cases[case];
        Ask {
            case,
            aggressor,
            request: Request::Prepare {
                case: planned.id.clone(),
                benchmark: planned.benchmark.clone(),
                params: planned.params.clone(),
                block: planned.block,
            },
            estimate: planned.estimate.prepare,
        }
    }

    /// Prepared and not broken.
    fn can_be_checked(&self, case: usize) -> bool {
        self.memory.holds(case) && matches!(self.state(case).standing, Standing::Open | Standing::Closed)
    }

    /// Checks the prepared cases of `group` that are not broken, in turns where they share a worker. The work of
    /// aggressors must be right too.
    pub(super) fn verify(&mut self, group: &[usize], when: When) -> Result<(), MeasureError> {
        self.charge(Account::Idle);
        for aggressor in [true, false] {
            let concerned = |c: &usize| !aggressor || has_aggressor(&self.cases[*c]);
            let mut rest: Vec<usize> = group.iter().copied().filter(concerned).collect();
            while !rest.is_empty() {
                let mut turn: Vec<usize> = Vec::new();
                rest.retain(|&case| {
                    let taken = turn.iter().any(|&t| self.cases[t].devices == self.cases[case].devices);
                    if !taken {
                        turn.push(case);
                    }
                    taken
                });
                turn.retain(|&c| self.can_be_checked(c));
                self.verify_together(&turn, aggressor, when)?;
            }
        }
        self.charge(Account::Verify);
        Ok(())
    }

    /// One check each of cases that are on different workers.
    fn verify_together(&mut self, turn: &[usize], aggressor: bool, when: When) -> Result<(), MeasureError> {
        let asks = turn.iter().map(|&case| Ask {
            case,
            aggressor,
            request: Request::Verify { case: self.cases[case].id.clone(), when },
            estimate: self.cases[case].estimate.round,
        });
        let begun = self.clock.now();
        let replies = self.ask(asks.collect(), "checking its results")?;
        let cost = between(begun, self.clock.now());
        for (&case, reply) in turn.iter().zip(replies) {
            if let Some(Reply::Checked(checked)) = reply {
                // The dearest: the check after the last block repeats what the one before the first did.
                self.facts.entry(case).and_modify(|f| f.verify = Seconds(f.verify.get().max(cost.get())));
                self.note(Entry::Check { case: self.cases[case].id.clone(), aggressor, checked })?;
            }
        }
        Ok(())
    }

    /// Makes room: the buffers get their last check before they go.
    fn evict(&mut self, case: usize) -> Result<(), MeasureError> {
        if !self.state(case).rounds.is_empty() {
            self.verify(&[case], When::After)?;
        }
        self.release(case)
    }

    /// Frees what a case holds, on both sides.
    pub(super) fn release(&mut self, case: usize) -> Result<(), MeasureError> {
        if !self.memory.holds(case) {
            return Ok(());
        }
        self.memory.forget(case);
        let id = self.cases[case].id.clone();
        for aggressor in [false, true] {
            let key = self.key(case, aggressor);
            if self.fleet.has(&key) && (!aggressor || has_aggressor(&self.cases[case])) {
                let request = Request::Release { case: id.clone() };
                self.send(Ask { case, aggressor, request, estimate: Seconds(0.5) });
                self.wait(&[(case, aggressor)], "releasing memory")?;
            }
        }
        Ok(())
    }
}
