//! An in-order queue: puts work on the timeline and computes its results.

use std::sync::MutexGuard;

use super::compute;
use super::device::SimDevice;
use super::launch::{Args, run_kernel};
use super::model::{Access, Direction, Work};
use super::state::{Fate, Operation, State, refused};
use crate::backend::{DeviceError, GemmProblem, Launch, Place, RawBuffer, RawGemm, Stream, TimingEvent};
use crate::kernel::KernelId;
use crate::unit::{Bytes, Seconds};

/// Host time of waiting for completion, in nanoseconds.
const SYNC_NS: f64 = 4000.0;

/// An in-order queue of a simulated device.
pub(super) struct SimStream<'d> {
    pub(super) device: &'d SimDevice,
    pub(super) index: usize,
}

impl SimStream<'_> {
    /// Host time catches up with everything queued here; never returns if the device hangs.
    fn complete(&self) -> Result<MutexGuard<'_, State>, DeviceError> {
        let mut state = self.device.state();
        if state.fate == Fate::Hangs {
            drop(state);
            loop {
                std::thread::sleep(std::time::Duration::from_secs(3600));
            }
        }
        self.device.alive(&state)?;
        state.now = state.now.max(state.streams[self.index]) + SYNC_NS;
        Ok(state)
    }
}

impl Stream for SimStream<'_> {
    fn copy(&mut self, to: RawBuffer, from: RawBuffer, size: Bytes) -> Result<(), DeviceError> {
        let mut state = self.device.state();
        let (call, size) = ("copy", size.count());
        state.bytes(call, from, size)?;
        let (target, source) = (state.buffer(call, to)?.place, state.buffer(call, from)?.place);
        let bytes = self.device.true_bytes(size);
        let pinned = Place::HostPinned;
        let work = match (source, target) {
            (Place::Device, Place::Device) => Work::Traffic(Access::Mixed, 2.0 * bytes, 2.0 * bytes),
            (host, Place::Device) => Work::Link(Direction::In, bytes, host == pinned),
            (Place::Device, host) => Work::Link(Direction::Out, bytes, host == pinned),
            _ => Work::Host(bytes),
        };
        self.device.queue(&mut state, self.index, work)?;
        state.produce(Operation("copy", [size as u64, 0, 0, 0, 0, 0]), &[from], (to, size), |sources, out| {
            out.copy_from_slice(&sources[0][..size]);
        })
    }

    fn upload(&mut self, to: RawBuffer, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let mut state = self.complete()?;
        let bytes = self.device.true_bytes(data.len());
        let version = state.next_version();
        let buffer = state.buffers.get_mut(&to.0).ok_or_else(|| refused("upload", "no such buffer"))?;
        let end = offset.checked_add(data.len());
        let target = end.and_then(|end| buffer.data.get_mut(offset..end));
        target.ok_or_else(|| refused("upload", "beyond the end of a buffer"))?.copy_from_slice(data);
        buffer.version = version;
        self.device.queue(&mut state, self.index, Work::Link(Direction::In, bytes, false))?;
        drop(state);
        self.complete().map(drop)
    }

    fn download(&mut self, from: RawBuffer, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        let mut state = self.complete()?;
        let bytes = self.device.true_bytes(data.len());
        let buffer = state.buffer("download", from)?;
        let end = offset.checked_add(data.len());
        let source = end.and_then(|end| buffer.data.get(offset..end));
        data.copy_from_slice(source.ok_or_else(|| refused("download", "beyond the end of a buffer"))?);
        self.device.queue(&mut state, self.index, Work::Link(Direction::Out, bytes, false))?;
        drop(state);
        self.complete().map(drop)
    }

    fn launch(&mut self, launch: Launch<'_>) -> Result<(), DeviceError> {
        let kernel = KernelId::ALL.get(launch.kernel.0 as usize);
        let kernel = *kernel.ok_or_else(|| refused("launch", "no such kernel"))?;
        let args = Args::check(kernel, launch.args)?;
        let mut state = self.device.state();
        self.device.alive(&state)?;
        // Computing first refuses what does not fit before any of it is on the timeline.
        run_kernel(&mut state, kernel, launch.lanes as usize, &args)?;
        let work = self.device.work_of(&state, kernel, launch.lanes, &args)?;
        self.device.queue(&mut state, self.index, work)
    }

    fn gemm(&mut self, plan: RawGemm, a: RawBuffer, b: RawBuffer, c: RawBuffer) -> Result<(), DeviceError> {
        let mut state = self.device.state();
        let problem = *state.gemms.get(plan.0 as usize).ok_or_else(|| refused("gemm", "no such plan"))?;
        let GemmProblem { data_type, m, n, k } = problem;
        let (size, size_c) = (data_type.size(), compute::size_c(data_type));
        state.bytes("gemm", a, m * k * size)?;
        state.bytes("gemm", b, n * k * size)?;
        state.bytes("gemm", c, m * n * size_c)?;
        let edge = f64::from(self.device.info.scale.edge);
        let true_edges = [m, n, k].map(|e| e as f64 * edge);
        self.device.queue(&mut state, self.index, Work::Gemm(data_type, true_edges))?;
        let spoil = self.device.spoiled(data_type, 7919, m * n);
        let operation = Operation("gemm", [plan.0, 0, 0, 0, 0, 0]);
        state.produce(operation, &[a, b], (c, m * n * size_c), |sources, out| {
            let (a, b) = (&sources[0][..m * k * size], &sources[1][..n * k * size]);
            compute::gemm(data_type, [m, n, k], a, b, out, spoil);
        })
    }

    fn record(&mut self) -> Result<TimingEvent, DeviceError> {
        let mut state = self.device.state();
        self.device.alive(&state)?;
        let at = state.now.max(state.streams[self.index]);
        state.events.push(at);
        Ok(TimingEvent(state.events.len() as u64 - 1))
    }

    fn wait(&mut self, event: TimingEvent) -> Result<(), DeviceError> {
        let mut state = self.device.state();
        self.device.alive(&state)?;
        let at = *state.events.get(event.0 as usize).ok_or_else(|| refused("wait", "no such event"))?;
        state.streams[self.index] = state.streams[self.index].max(at);
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.complete().map(drop)
    }

    fn elapsed(&self, start: TimingEvent, end: TimingEvent) -> Result<Seconds, DeviceError> {
        let state = self.device.state();
        let at =
            |e: TimingEvent| state.events.get(e.0 as usize).copied().ok_or_else(|| refused("elapsed", "no such event"));
        let skew = 1.0 + self.device.faults.clock_skew.unwrap_or(0.0);
        Ok(Seconds((at(end)? - at(start)?) * 1e-9 * skew))
    }
}
