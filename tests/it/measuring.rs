//! A small run on the host CPU, in this process or in one of its own that tests may stop, kill or starve.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpu_assay::backend;
use gpu_assay::benchmark;
use gpu_assay::event::Event;
use gpu_assay::measure::{self, Children, Deadlines, MeasureError, Options};
use gpu_assay::record::{
    BackendId, Case, CaseEstimate, CaseId, DeviceId, Exclusive, FORMAT, Inventory, Ledger, Params, Plan, Record,
    RoundsPlan, Run, RunEnd, Source, Telemetry, ThermalState, Tool, Value,
};
use gpu_assay::unit::{Bytes, Seconds};

/// Names the folder in which [`supervise`] shall measure.
const FOLDER: &str = "GPU_ASSAY_TEST_FOLDER";

/// Children are this package's binary; the floor is long for a busy machine and short for a test.
pub fn children() -> Children {
    Children {
        executable: Some(PathBuf::from(env!("CARGO_BIN_EXE_gpu-assay"))),
        deadlines: Deadlines { factor: 1.0, floor: Seconds(8.0) },
    }
}

pub fn host() -> DeviceId {
    DeviceId::new(BackendId::Host, 0)
}

/// A case that writes a small array on the host.
pub fn case(op: &str) -> Case {
    let params = Params::default().with("op", Value::Word(op.to_owned())).with("size", Value::Size(4 << 20));
    let id = CaseId::new("memory_bandwidth", &params, &[host()]);
    Case {
        slot: id.0.clone(),
        id,
        benchmark: "memory_bandwidth".to_owned(),
        params,
        devices: vec![host()],
        exclusive: vec![Exclusive::Device(host()), Exclusive::HostMemory],
        gate: true,
        value: 1,
        block: Seconds(0.05),
        precision: 0.0,
        footprint: Bytes::mib(16),
        blocks_per_round: 1,
        estimate: CaseEstimate { prepare: Seconds(0.2), round: Seconds(0.1) },
        state: ThermalState::Warm,
    }
}

/// Three cases, `rounds` rounds, `budget` seconds.
pub fn options(folder: &Path, rounds: u32, budget: f64) -> Options {
    let devices = backend::all(None).unwrap().iter().find(|b| b.id() == BackendId::Host).unwrap().probe().devices;
    let selected = vec![host()];
    let source = Source { name: "test".to_owned(), sha256: EMPTY_SHA256.to_owned(), text: String::new() };
    let record = Record {
        format: FORMAT,
        id: "test".to_owned(),
        tool: Tool {
            name: "gpu-assay".to_owned(),
            version: "0".to_owned(),
            binary_sha256: None,
            method_versions: BTreeMap::new(),
        },
        run: Run {
            started_at: measure::utc_now(),
            ended_at: None,
            duration: Seconds(0.0),
            boot_id: measure::boot_id(),
            seed: 1,
            arguments: Vec::new(),
            budget: None,
            end: RunEnd::Died,
            simulated: false,
            neutralised_environment: BTreeMap::new(),
        },
        suite: source,
        offer: None,
        inventory: Inventory { devices, selected, ..Inventory::default() },
        plan: Plan {
            cases: vec![case("write"), case("copy"), case("triad")],
            not_planned: Vec::new(),
            rounds: RoundsPlan { min: rounds.min(3), max: rounds },
            soak: Seconds(0.1),
            budget: Seconds(budget),
            estimate: Seconds(1.0),
        },
        results: Vec::new(),
        telemetry: Telemetry::default(),
        ledger: Ledger::default(),
        notices: Vec::new(),
    };
    Options {
        folder: folder.to_owned(),
        record,
        simulate: None,
        storage: None,
        spent: Seconds(0.0),
        children: children(),
    }
}

/// SHA-256 of no bytes.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Measures in this process.
pub fn run(options: Options) -> Result<Record, MeasureError> {
    measure::run(options, &mut |_: &Event| {})
}

/// Entry of [`Supervisor`]: not a test of its own. Without the variable it does nothing.
#[test]
fn supervise() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    assert!(benchmark::find("memory_bandwidth").is_some());
    // More rounds and time than any test needs: the tests end it.
    match run(options(Path::new(&folder), 100_000, 600.0)) {
        Ok(_) => {}
        Err(MeasureError::Write { path, source }) => panic!("write failed: {}: {source}", path.display()),
        Err(error) => panic!("{error}"),
    }
}

/// A supervisor in a process of its own.
pub struct Supervisor {
    pub process: Child,
    pub folder: PathBuf,
}

impl Supervisor {
    /// Starts measuring in `folder`; `shell` runs before, in the same process.
    pub fn start(folder: &Path, shell: &str) -> Supervisor {
        let script = format!("{shell}\nexec \"$0\" --exact measuring::supervise --nocapture --test-threads=1");
        let process = Command::new("bash")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(FOLDER, folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Supervisor { process, folder: folder.to_owned() }
    }

    /// Waits until the journal holds `count` blocks.
    pub fn wait_for_blocks(&mut self, count: usize) {
        let journal = self.folder.join(measure::JOURNAL);
        let blocks = || {
            let text = std::fs::read_to_string(&journal).unwrap_or_default();
            text.matches("{\"entry\":\"blocks\"").count()
        };
        wait_until("blocks in the journal", || blocks() >= count || self.process.try_wait().unwrap().is_some());
        assert!(blocks() >= count, "the supervisor ended early: {:?}", self.process.try_wait());
    }

    /// Processes it has started, by what they are.
    pub fn children(&self, kind: &str) -> Vec<u32> {
        let parent = self.process.id();
        processes()
            .into_iter()
            .filter(|p| p.parent == parent && p.arguments.windows(2).any(|w| w == ["child", kind]))
            .map(|p| p.id)
            .collect()
    }

    pub fn signal(&self, signal: &str) {
        send(signal, self.process.id());
    }

    /// Waits for its end; its exit code and stderr.
    pub fn wait(mut self) -> (Option<i32>, String) {
        wait_until("the supervisor to end", || self.process.try_wait().unwrap().is_some());
        let output = self.process.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Sends a signal by name.
pub fn send(signal: &str, process: u32) {
    let status = Command::new("kill").args([format!("-{signal}"), process.to_string()]).status().unwrap();
    assert!(status.success(), "kill -{signal} {process}");
}

/// Does a process (that is not a zombie) exist?
pub fn is_alive(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])))
}

struct Process {
    id: u32,
    parent: u32,
    arguments: Vec<String>,
}

fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let arguments = line.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect();
            Some(Process { id, parent, arguments })
        })
        .collect()
}

/// Polls, with a limit that only a hang exceeds.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(90);
    while !done() {
        assert!(Instant::now() < limit, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
