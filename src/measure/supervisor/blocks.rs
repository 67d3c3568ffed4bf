//! Taking blocks: all cases of a group from one start instant.

use crate::event::Event;
use crate::measure::MeasureError;
use crate::measure::clock::{between, nanoseconds};
use crate::measure::journal::{Entry, Point};
use crate::measure::ledger::Account;
use crate::measure::protocol::{BlockReply, Clocks, MetricInfo, Reply, Request, TimedRequest};
use crate::measure::supervisor::Supervisor;
use crate::measure::supervisor::requests::Ask;
use crate::record::{Block, ThermalState};
use crate::unit::{Quantity, Seconds};

/// From sending a request to the common start: enough for all workers to have read it.
const LEAD: Seconds = Seconds(0.002);

/// How blocks are taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// Length of each block; the case's own if `None`.
    pub length: Option<Seconds>,
    /// One untimed sample first.
    pub lead_in: bool,
    /// Where the time between start and end goes.
    pub account: Account,
}

impl Manner {
    /// A block of a round.
    pub(super) const ROUND: Manner = Manner { length: None, lead_in: true, account: Account::Sample };
}

impl Supervisor<'_> {
    /// The common start instant for requests sent now.
    pub(super) fn start_at(&self) -> u64 {
        // Simulated workers read at once: simulated time does not pass in between.
        if self.clock.is_virtual() { self.clock.now() } else { self.clock.now() + nanoseconds(LEAD) }
    }

    /// A request for one timed stretch of `case`.
    pub(super) fn timed(&self, case: usize, start_at: u64, manner: Manner) -> TimedRequest {
        let planned = &self.cases[case];
        TimedRequest {
            case: planned.id.clone(),
            start_at,
            length: manner.length.unwrap_or(planned.block),
            lead_in: manner.lead_in && !super::schedule::uses_disk(planned),
            companions: Vec::new(),
        }
    }

    /// Planned time of a timed stretch, for its deadline: one sample may be longer than the block.
    pub(super) fn timed_estimate(&self, case: usize, length: Seconds) -> Seconds {
        let sample = self.facts.get(&case).map_or(0.0, |f| f.prepared.sample.get());
        let planned = self.cases[case].estimate.round.get();
        Seconds(length.get().max(planned).max(2.0 * sample))
    }

    /// Takes one block of each case of `group` together. `None` where it went wrong.
    pub(super) fn take(&mut self, group: &[usize], manner: Manner) -> Result<Vec<Option<BlockReply>>, MeasureError> {
        self.charge(Account::Idle);
        let start_at = self.start_at();
        let asks = group.iter().map(|&case| {
            let timed = self.timed(case, start_at, manner);
            let estimate = self.timed_estimate(case, timed.length);
            Ask { case, aggressor: false, request: Request::Block(timed), estimate }
        });
        let replies = self.ask(asks.collect(), "taking a block")?;
        let blocks: Vec<Option<BlockReply>> = replies
            .into_iter()
            .map(|reply| match reply {
                Some(Reply::Block(block)) => Some(block),
                _ => None,
            })
            .collect();
        self.charge_blocks(start_at, &blocks, manner.account);
        self.collect(manner.account == Account::Sample)?;
        Ok(blocks)
    }

    /// Waiting, lead-in, timed part, and the wait for the last answer.
    pub(super) fn charge_blocks(&mut self, start_at: u64, blocks: &[Option<BlockReply>], account: Account) {
        let first = blocks.iter().flatten().map(|b| b.start).min();
        let last = blocks.iter().flatten().map(|b| b.end).max();
        let now = self.clock.now();
        if let (Some(first), Some(last)) = (first, last) {
            self.stopwatch.charge(Account::Idle, start_at.min(now));
            self.stopwatch.charge(Account::Warm, first.min(now));
            self.stopwatch.charge(account, last.min(now));
        }
        self.charge(Account::Idle);
    }

    /// Journals the blocks of one round of plain cases.
    pub(super) fn keep(
        &mut self,
        group: &[usize],
        round: u32,
        state: ThermalState,
        blocks: Vec<Option<BlockReply>>,
    ) -> Result<(), MeasureError> {
        for (&case, block) in group.iter().zip(blocks) {
            let Some(block) = block else { continue };
            let Some(facts) = self.facts.get(&case) else { continue };
            let info = facts.prepared.work.clone();
            let clocks = block.clocks;
            let points = self.points(round, state, &info, block);
            self.note_blocks(case, round, points, vec![clocks])?;
        }
        Ok(())
    }

    pub(super) fn note_blocks(
        &mut self,
        case: usize,
        round: u32,
        points: Vec<Point>,
        clocks: Vec<Clocks>,
    ) -> Result<(), MeasureError> {
        let id = self.cases[case].id.clone();
        if let Some(point) = points.iter().find(|p| p.primary) {
            let value = Quantity { value: point.block.value, unit: point.info.unit };
            self.observer.on(&Event::Block { case: id.clone(), round, value });
        }
        self.note(Entry::Blocks { case: id, round, points, clocks })
    }

    /// The primary value of a block and its accompanying readings.
    fn points(&self, round: u32, state: ThermalState, info: &MetricInfo, block: BlockReply) -> Vec<Point> {
        let start = between(self.progress.begin.origin, block.start);
        let primary = Point {
            info: info.clone(),
            labels: Default::default(),
            state,
            primary: true,
            block: Block { round, start, value: block.value, samples: block.samples, clock: block.clock },
        };
        let beside = block.observations.into_iter().map(|o| Point {
            info: o.info,
            labels: o.labels,
            state,
            primary: false,
            block: Block { round, start, value: o.value, samples: Vec::new(), clock: None },
        });
        std::iter::once(primary).chain(beside).collect()
    }
}
