//! A child process as the supervisor sees it: started with a scrubbed environment in its own process group,
//! spoken to over stdin, heard through two reader threads, and never waited for without a limit.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::measure::environment;

/// Time given to a killed child before it is abandoned (it is then in uninterruptible sleep).
const REAP: Duration = Duration::from_secs(1);

/// Lines of stderr kept for the error message, and bytes of each.
const STDERR_LINES: usize = 8;
const STDERR_LINE_BYTES: usize = 400;

/// Longest line accepted from a child.
const LINE_BYTES: u64 = 64 << 20;

/// How children are started.
#[derive(Debug, Clone, PartialEq)]
pub struct Launcher {
    /// The executable.
    pub program: PathBuf,
    /// Description of simulated devices, handed on as `--simulate`.
    pub simulate: Option<String>,
}

impl Launcher {
    /// This executable.
    pub fn current(simulate: Option<String>) -> std::io::Result<Launcher> {
        Ok(Launcher { program: std::env::current_exe()?, simulate })
    }

    /// `child KIND [--simulate …]`.
    pub fn arguments(&self, kind: &str) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["child".into(), kind.into()];
        if let Some(simulate) = &self.simulate {
            arguments.extend(["--simulate".into(), simulate.into()]);
        }
        arguments
    }

    /// Starts a child with all three streams piped.
    pub fn spawn(&self, arguments: &[OsString], epoch: Option<u64>) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Own group: a Ctrl-C in the terminal is the supervisor's to handle.
        command.process_group(0);
        for name in environment::scrub_own().neutralised.keys() {
            command.env_remove(name);
        }
        if let Some(epoch) = epoch {
            command.env("GPU_ASSAY_SIM_EPOCH", epoch.to_string());
        }
        command.spawn()
    }
}

/// What a child says, in order.
#[derive(Debug)]
pub enum Heard {
    /// A line of its stdout that begins with `{`; anything else is a library's chatter.
    Line(String),
    /// Its stdout ended.
    Closed,
}

/// A running child.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stderr: Arc<Mutex<VecDeque<String>>>,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Exit code or signal in words.
    pub status: String,
    /// Its last lines on stderr.
    pub stderr: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.status)?;
        if self.stderr.is_empty() { Ok(()) } else { write!(f, "; last words: {}", self.stderr) }
    }
}

impl Process {
    /// Starts `launcher kind`; what it says arrives at `heard`, each time with `serial`.
    pub fn start(
        launcher: &Launcher,
        kind: &str,
        epoch: Option<u64>,
        serial: u64,
        heard: Sender<(u64, Heard)>,
    ) -> std::io::Result<Process> {
        let mut child = launcher.spawn(&launcher.arguments(kind), epoch)?;
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(pipe) = child.stderr.take() {
            let tail = Arc::clone(&stderr);
            std::thread::Builder::new().name("stderr".to_owned()).spawn(move || keep_tail(pipe, &tail))?;
        }
        if let Some(pipe) = child.stdout.take() {
            std::thread::Builder::new().name("stdout".to_owned()).spawn(move || forward_lines(pipe, serial, &heard))?;
        }
        let stdin = child.stdin.take();
        Ok(Process { child, stdin, stderr })
    }

    /// Sends one line. An error means that the child is gone; its `Closed` will follow.
    pub fn send(&mut self, line: &str) -> std::io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        stdin.write_all(format!("{line}\n").as_bytes())
    }

    /// Kills it and waits a moment. `None`: it does not die and was abandoned.
    pub fn kill(mut self) -> Option<Ended> {
        // Fails only if it is dead already.
        let _ = self.child.kill();
        self.reap()
    }

    /// Closes its stdin, which ends it, and kills it if that takes longer than a moment.
    pub fn finish(mut self) -> Option<Ended> {
        self.stdin = None;
        match self.reap() {
            Some(ended) => Some(ended),
            None => self.kill(),
        }
    }

    fn reap(&mut self) -> Option<Ended> {
        let limit = Instant::now() + REAP;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(self.ended(status)),
                Ok(None) if Instant::now() < limit => std::thread::sleep(Duration::from_millis(2)),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn ended(&self, status: ExitStatus) -> Ended {
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        // The reader thread may still be busy with the last line: a moment is enough, and nothing depends on it.
        std::thread::sleep(Duration::from_millis(5));
        let lines = self.stderr.lock().map(|l| l.iter().cloned().collect::<Vec<_>>()).unwrap_or_default();
        Ended { status, stderr: lines.join(" | ") }
    }
}

fn keep_tail(pipe: ChildStderr, tail: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        // Bounded reads: a child that writes without newlines must not fill our memory.
        match (&mut reader).take(64 << 10).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        line.truncate(STDERR_LINE_BYTES);
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if let Ok(mut tail) = tail.lock()
            && !text.is_empty()
        {
            tail.push_back(text);
            if tail.len() > STDERR_LINES {
                tail.pop_front();
            }
        }
    }
}

fn forward_lines(pipe: ChildStdout, serial: u64, heard: &Sender<(u64, Heard)>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = String::new();
        let read = (&mut reader).take(LINE_BYTES).read_line(&mut line);
        let done = !matches!(read, Ok(n) if n > 0) || !line.ends_with('\n');
        let send = match done {
            true => heard.send((serial, Heard::Closed)),
            false if line.starts_with('{') => heard.send((serial, Heard::Line(line))),
            false => Ok(()),
        };
        if done || send.is_err() {
            return;
        }
    }
}
