//! Printing and writing: nothing half-written, nothing hostile on the terminal.

use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
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
    // Equal JSON that a terminal can show: such characters occur only within strings.
    Ok(text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        match is_hostile(c) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
        safe
    }))
}

/// Text from the machine or a file, made harmless for a terminal: control and bidirectional characters become `\u{…}`.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}

fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes beside the target and renames, so that a reader never sees half a file and a full disk leaves the old one. A
/// link is followed; a pipe or a device is written to and stays what it is; a write-protected file is refused.
pub fn write_atomically(path: &Path, text: &str) -> Result<(), CliError> {
    let found = std::fs::metadata(path).ok();
    if found.as_ref().is_some_and(|f| f.is_file() && f.permissions().readonly()) {
        let error = std::io::Error::new(ErrorKind::PermissionDenied, "it is write-protected");
        return Err(CliError::write(path, &error));
    }
    if found.as_ref().is_some_and(|f| !f.is_file() && !f.is_dir()) {
        let opened = std::fs::OpenOptions::new().write(true).open(path);
        return opened.and_then(|mut f| f.write_all(text.as_bytes())).map_err(|e| CliError::write(path, &e));
    }
    let target =
        if found.is_some() { path.canonicalize().map_err(|e| CliError::write(path, &e))? } else { path.into() };
    let path = target.as_path();
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

/// Refuses an output that is one of the command's own inputs: it would replace the evidence by what was made of it.
pub fn refuse_input(output: &Path, inputs: &[&Path]) -> Result<(), CliError> {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let Some(own) = identity(output) else { return Ok(()) };
    match inputs.iter().find(|input| identity(input) == Some(own)) {
        Some(input) => Err(CliError::usage(format_args!("{} would overwrite {}", output.display(), input.display()))
            .help("give another name for the output")),
        None => Ok(()),
    }
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

/// What a run writes into its folder.
const RUN_FILES: [&str; 4] = ["record.json", "assessment.json", "report.html", "journal.ndjson"];

/// Refuses an output that would replace a file of the run in `folder`.
pub fn refuse_run_file(output: &Path, folder: &Path) -> Result<(), CliError> {
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_within = parent.canonicalize().ok().is_some_and(|p| folder.canonicalize().is_ok_and(|f| f == p));
    let is_own = output.file_name().is_some_and(|name| RUN_FILES.iter().any(|own| name == *own));
    match is_within && is_own {
        true => Err(CliError::usage(format_args!("{} would overwrite a file of the run", output.display()))
            .help("give another name for the output")),
        false => Ok(()),
    }
}

/// Proves that a file can be made in a folder that the user named.
pub fn probe_folder(folder: &Path) -> Result<(), CliError> {
    let probe = folder.join(format!(".probe.{}", std::process::id()));
    std::fs::File::create_new(&probe).map_err(|e| CliError::cannot_create(&probe, &e))?;
    std::fs::remove_file(&probe).map_err(|e| CliError::write(&probe, &e))
}

/// Creates the folder of a run and proves that it can be written, before anything is measured.
pub fn create_run_folder(folder: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(folder).map_err(|e| CliError::cannot_create(folder, &e))?;
    for name in RUN_FILES {
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
    fn json_carries_hostile_text_as_escapes() {
        let text = json(&"\u{9b}31m\u{202e}\u{61c}ä").expect("plain");
        assert_eq!(text, "\"\\u009b31m\\u202e\\u061cä\"\n");
        assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), "\u{9b}31m\u{202e}\u{61c}ä");
    }

    #[test]
    fn what_is_no_plain_file_stays_what_it_is() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "old").expect("writable");
        std::os::unix::fs::symlink("target", &link).expect("link");
        write_atomically(&link, "new").expect("through the link");
        assert_eq!(std::fs::read_to_string(&target).expect("there"), "new");
        assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
        write_atomically(Path::new("/dev/null"), "x").expect("a device is written to");
        assert!(!std::fs::metadata("/dev/null").expect("there").is_file());
        let mut mode = std::fs::metadata(&target).expect("there").permissions();
        mode.set_readonly(true);
        std::fs::set_permissions(&target, mode).expect("ours");
        assert!(write_atomically(&target, "x").is_err(), "write-protected, whoever asks");
        assert!(refuse_input(&link, &[&target]).is_err() && refuse_input(&target, &[]).is_ok());
    }

    #[test]
    fn a_folder_with_a_run_is_refused() {
        let folder = tempfile::tempdir().expect("temporary folder");
        create_run_folder(folder.path()).expect("empty folder");
        assert!(refuse_run_file(&folder.path().join("record.json"), folder.path()).is_err());
        assert!(refuse_run_file(&folder.path().join("log.json"), folder.path()).is_ok());
        assert!(probe_folder(folder.path()).is_ok() && probe_folder(&folder.path().join("absent")).is_err());
        std::fs::write(folder.path().join("record.json"), "{}").expect("writable");
        assert!(create_run_folder(folder.path()).is_err());
    }
}
