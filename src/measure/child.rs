//! Entry points of the hidden `child` subcommands, and [`call`], which runs one with a deadline.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::backend;
use crate::benchmark;
use crate::exit::Exit;
use crate::measure::process::Launcher;
use crate::measure::{signals, telemetry, worker};

/// `child worker`: serves requests from stdin until it ends. Never returns while the supervisor lives.
pub fn worker_main(simulate: Option<&str>) -> Exit {
    signals::ignore();
    let Some(mut out) = take_stdout() else { return Exit::Internal };
    let Ok(backends) = backend::all(simulate) else { return Exit::Usage };
    let requests = lines_until_the_supervisor_ends();
    let answer = |answer| -> std::io::Result<()> {
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        out.write_all(&line)
    };
    match worker::serve(&requests, answer, &backends, &benchmark::find) {
        Ok(()) => Exit::Accepted,
        Err(_) => Exit::Internal,
    }
}

/// `child telemetry`: reads sensors and foreign load until stdin ends.
pub fn telemetry_main(simulate: Option<&str>) -> Exit {
    signals::ignore();
    let Some(out) = take_stdout() else { return Exit::Internal };
    let Ok(backends) = backend::all(simulate) else { return Exit::Usage };
    let requests = lines_until_the_supervisor_ends();
    match telemetry::serve(&requests, out, &backends) {
        Ok(()) => Exit::Accepted,
        Err(_) => Exit::Internal,
    }
}

/// For children that read nothing: ends this process as soon as its stdin does, from a thread of its own, so
/// that a hung driver call does not outlive the supervisor.
pub fn end_with_supervisor() {
    signals::ignore();
    // Nobody receives: the values are dropped.
    drop(lines_until_the_supervisor_ends::<serde_json::Value>());
}

/// Reads stdin in a thread of its own; its end ends the process at once, whatever the other threads do.
fn lines_until_the_supervisor_ends<T: DeserializeOwned + Send + 'static>() -> Receiver<T> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(std::io::stdin()).lines() {
            let Ok(line) = line else { break };
            match serde_json::from_str(&line) {
                // The receiver may be gone (`end_with_supervisor`): only the end of stdin matters then.
                Ok(value) => drop(send.send(value)),
                Err(_) => break,
            }
        }
        // SAFETY: ends the process; destructors and exit handlers of hung libraries must not run.
        unsafe { libc::_exit(0) };
    });
    receive
}

/// Keeps stdout for the protocol and lets everything else that prints there, vendor libraries included, go to
/// stderr.
fn take_stdout() -> Option<File> {
    // SAFETY: duplicates descriptors of this process; the new one is owned by the returned file alone.
    unsafe {
        let own = libc::fcntl(std::io::stdout().as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3);
        if own < 0 || libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) < 0 {
            return None;
        }
        Some(File::from_raw_fd(own))
    }
}

/// Why a child gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It could not be started.
    #[error("cannot start a child process: {0}")]
    Spawn(#[from] std::io::Error),
    /// It did not end in time and was killed.
    #[error("a child process ({what}) did not answer within {} s", .deadline.as_secs_f64())]
    Deadline {
        /// subcommand
        what: String,
        /// time allowed
        deadline: Duration,
    },
    /// It ended without success.
    #[error("a child process ({what}) failed: {ended}")]
    Ended {
        /// subcommand
        what: String,
        /// status and last words
        ended: String,
    },
}

/// Runs `child ARGS` of this executable and returns its stdout.
///
/// # Errors
/// [`ChildError`] if it cannot be started, does not end within `deadline` (it is then killed, and not waited
/// for more than a moment), or ends without success.
pub fn call(args: &[&str], deadline: Duration) -> Result<Vec<u8>, ChildError> {
    call_with(&Launcher::current(None)?, args, deadline)
}

/// As [`call`], with another executable.
///
/// # Errors
/// As [`call`].
pub fn call_with(launcher: &Launcher, args: &[&str], deadline: Duration) -> Result<Vec<u8>, ChildError> {
    let limit = Instant::now() + deadline;
    let what = args.first().copied().unwrap_or_default().to_owned();
    let arguments: Vec<OsString> = std::iter::once("child").chain(args.iter().copied()).map(OsString::from).collect();
    let mut child = launcher.spawn(&arguments, None)?;
    let stdin = child.stdin.take(); // open until we are done: its end would end the child
    let out = child.stdout.take().map(read_all);
    let err = child.stderr.take().map(read_all);
    let receive = |from: Option<Receiver<Vec<u8>>>, limit: Instant| {
        from.map_or(Some(Vec::new()), |r| r.recv_timeout(limit.saturating_duration_since(Instant::now())).ok())
    };
    let stdout = receive(out, limit);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if stdout.is_none() || Instant::now() >= limit => break None,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let (Some(stdout), Some(status)) = (stdout, status) else {
        // Not waited for: a child in uninterruptible sleep would hold us.
        let _ = child.kill();
        let _ = child.try_wait();
        return Err(ChildError::Deadline { what, deadline });
    };
    drop(stdin);
    if status.success() {
        return Ok(stdout);
    }
    let stderr = receive(err, Instant::now() + Duration::from_millis(200)).unwrap_or_default();
    let tail = stderr.len().saturating_sub(2000);
    let words = String::from_utf8_lossy(&stderr[tail..]).trim().to_owned();
    Err(ChildError::Ended { what, ended: format!("{status}; {words}") })
}

/// Reads a pipe to its end in a thread.
fn read_all(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth returning; the receiver may have given up.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    receive
}
