//! Printing and writing: nothing half-written, nothing hostile on the terminal.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::error::CliError;
use crate::exit::Exit;

/// Prints on stdout; a closed pipe (`| head`) ends quietly.
pub fn stdout(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError::write(Path::new("stdout"), &error)),
        _ => Ok(()),
    }
}

/// `value` as pretty JSON on stdout.
pub fn stdout_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    stdout(&json(value)?)
}

/// `value` as pretty JSON with a final newline.
pub fn json(value: &impl serde::Serialize) -> Result<String, CliError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|e| CliError::new(Exit::Internal, format_args!("cannot serialise: {e}")))?;
    text.push('\n');
    Ok(text)
}

/// Text from the machine or a file, made harmless for a terminal: control and bidirectional characters become `\u{…}`.
pub fn printable(text: &str) -> String {
    let hostile = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if hostile(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Writes beside the target and renames, so that a reader never sees half a file and a full disk leaves the old one.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), CliError> {
    let temporary = temporary_name(path);
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        // The half-written file helps nobody; if removing fails too, the first error is the one to tell.
        let _ = std::fs::remove_file(&temporary);
        CliError::write(path, &error)
    })
}

fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

/// Whether to colour stderr or stdout: a terminal, and nobody said no.
pub fn colour(terminal: &impl IsTerminal) -> bool {
    terminal.is_terminal()
        && std::env::var_os("NO_COLOR").is_none()
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Creates the folder of a run and proves that it can be written, before anything is measured.
pub fn create_run_folder(folder: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(|e| CliError::cannot_create(folder, &e))?;
    for name in ["record.json", "assessment.json", "report.html", "journal.ndjson"] {
        if folder.join(name).exists() {
            let error = std::io::Error::new(ErrorKind::AlreadyExists, "a run is already there");
            return Err(CliError::cannot_create(&folder.join(name), &error)
                .help("give another folder with --out, or continue that run with --resume"));
        }
    }
    let probe = folder.join(format!(".probe.{}", std::process::id()));
    // A few MiB is what a large record needs; a full disk shows here rather than after minutes of measuring.
    let filled = std::fs::File::create(&probe).map_err(|e| CliError::cannot_create(&probe, &e)).and_then(|mut f| {
        f.write_all(&vec![0x5a; 8 << 20]).and_then(|()| f.sync_all()).map_err(|e| CliError::write(&probe, &e))
    });
    // Leaving the probe behind is harmless, and the error that matters is `filled`.
    let _ = std::fs::remove_file(&probe);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_made_visible() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}b\n"), "a\\u{1b}[31m\\u{202e}b\n");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a.json");
        write_atomically(&path, "old").expect("writable");
        std::fs::create_dir(temporary_name(&path)).expect("blocker");
        assert!(write_atomically(&path, "new").is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), "old");
    }

    #[test]
    fn a_folder_with_a_run_is_refused() {
        let folder = tempfile::tempdir().expect("temporary folder");
        create_run_folder(folder.path()).expect("empty folder");
        std::fs::write(folder.path().join("record.json"), "{}").expect("writable");
        assert!(create_run_folder(folder.path()).is_err());
    }
}
