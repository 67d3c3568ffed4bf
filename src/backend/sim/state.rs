//! What a simulated device holds: buffers with really computed contents, its timeline, its fate.

use std::collections::HashMap;

use crate::backend::{DeviceError, GemmProblem, Place, RawBuffer, Reading};

/// What has become of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Fate {
    #[default]
    Works,
    /// Queued work never completes.
    Hangs,
    /// Gone.
    Lost,
}

pub(super) struct Buffer {
    pub(super) data: Vec<u8>,
    pub(super) place: Place,
    /// Changes whenever the content does.
    pub(super) version: u64,
}

/// An operation with its arguments: which, then lanes or edges and the bits of each argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Operation(pub(super) &'static str, pub(super) [u64; 6]);

/// What produced the content of a buffer.
#[derive(PartialEq)]
pub(super) struct Origin {
    pub(super) operation: Operation,
    /// Handle and version of up to two inputs.
    pub(super) inputs: [(u64, u64); 2],
    /// Version of the output it made.
    pub(super) output: u64,
}

/// Times are nanoseconds since the epoch.
pub(super) struct State {
    pub(super) fate: Fate,
    /// The host's time.
    pub(super) now: f64,
    /// When each engine is free: kernels, copies in, copies out.
    pub(super) engines: [f64; 3],
    /// When each stream's queued work ends.
    pub(super) streams: Vec<f64>,
    pub(super) events: Vec<f64>,
    pub(super) buffers: HashMap<u64, Buffer>,
    pub(super) origins: HashMap<u64, Origin>,
    pub(super) gemms: Vec<GemmProblem>,
    pub(super) last_handle: u64,
    pub(super) last_version: u64,
    /// Device memory in use, in true size.
    pub(super) used: f64,
    pub(super) launches: u64,
    pub(super) companions: [u32; 4],
    pub(super) has_companions: bool,
    pub(super) is_neighbour: bool,
    pub(super) temperature: f64,
    /// How far temperature and sensors have been followed.
    pub(super) followed: f64,
    pub(super) next_reading: f64,
    pub(super) sensor_reads: u64,
    pub(super) readings: Vec<Reading>,
}

impl State {
    /// At the epoch, empty.
    pub(super) fn new(temperature: f64, first_reading: f64) -> State {
        State {
            fate: Fate::Works,
            now: 0.0,
            engines: [0.0; 3],
            streams: Vec::new(),
            events: Vec::new(),
            buffers: HashMap::new(),
            origins: HashMap::new(),
            gemms: Vec::new(),
            last_handle: 0,
            last_version: 0,
            used: 0.0,
            launches: 0,
            companions: [0; 4],
            has_companions: false,
            is_neighbour: false,
            temperature,
            followed: 0.0,
            next_reading: first_reading,
            sensor_reads: 0,
            readings: Vec::new(),
        }
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    pub(super) fn buffer(&self, call: &str, handle: RawBuffer) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&handle.0).ok_or_else(|| refused(call, "no such buffer"))
    }

    /// The first `size` bytes of a buffer.
    pub(super) fn bytes(&self, call: &str, handle: RawBuffer, size: usize) -> Result<&[u8], DeviceError> {
        self.buffer(call, handle)?.data.get(..size).ok_or_else(|| refused(call, "beyond the end of a buffer"))
    }

    /// As [`State::try_produce`], with arithmetic that cannot fail.
    pub(super) fn produce(
        &mut self,
        operation: Operation,
        inputs: &[RawBuffer],
        out: (RawBuffer, usize),
        compute: impl FnOnce(&[&[u8]], &mut [u8]),
    ) -> Result<(), DeviceError> {
        self.try_produce(operation, inputs, out, |sources, out| {
            compute(sources, out);
            Ok(())
        })
    }

    /// Computes the first `size` bytes of `out` from `inputs`, unless they still hold exactly that.
    pub(super) fn try_produce(
        &mut self,
        operation: Operation,
        inputs: &[RawBuffer],
        (out, size): (RawBuffer, usize),
        compute: impl FnOnce(&[&[u8]], &mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let call = operation.0;
        self.bytes(call, out, size)?;
        let mut versions = [(0, 0); 2];
        for (version, input) in versions.iter_mut().zip(inputs) {
            *version = (input.0, self.buffer(call, *input)?.version);
        }
        let current = self.buffer(call, out)?.version;
        let is_there = self
            .origins
            .get(&out.0)
            .is_some_and(|o| o.output == current && o.operation == operation && o.inputs == versions);
        if is_there {
            return Ok(());
        }
        // The output leaves the map while its inputs are read; an output that is also an input is copied.
        let mut data = match self.buffers.get_mut(&out.0) {
            Some(buffer) if inputs.contains(&out) => buffer.data.clone(),
            Some(buffer) => std::mem::take(&mut buffer.data),
            None => return Err(refused(call, "no such buffer")),
        };
        let sources: Vec<&[u8]> = inputs.iter().map(|b| self.buffers.get(&b.0).map_or(&[][..], |b| &b.data)).collect();
        let result = compute(&sources, &mut data[..size]);
        let version = self.next_version();
        if let Some(buffer) = self.buffers.get_mut(&out.0) {
            buffer.data = data;
            buffer.version = version;
        }
        if result.is_ok() {
            self.origins.insert(out.0, Origin { operation, inputs: versions, output: version });
        }
        result
    }
}

/// A call that a driver would refuse.
pub(super) fn refused(call: &str, message: &str) -> DeviceError {
    DeviceError::Driver { call: call.to_owned(), message: format!("SIMULATED: {message}") }
}
