//! What a command can fail with: a message with place and remedy, and the exit code it means.

use std::fmt;
use std::path::Path;

use crate::exit::Exit;

/// An error at the edge of the program.
#[derive(Debug)]
pub struct CliError {
    exit: Exit,
    message: Box<Message>,
}

#[derive(Debug)]
enum Message {
    Text {
        message: String,
        help: Option<String>,
    },
    /// With file, line and caret.
    Diagnostic(miette::Report),
}

impl CliError {
    /// Usage or input error.
    pub fn usage(message: impl fmt::Display) -> CliError {
        CliError::new(Exit::Usage, message)
    }
    /// Any exit code.
    pub fn new(exit: Exit, message: impl fmt::Display) -> CliError {
        CliError { exit, message: Box::new(Message::Text { message: message.to_string(), help: None }) }
    }
    /// Adds what the user can do.
    pub fn help(mut self, help: impl fmt::Display) -> CliError {
        if let Message::Text { help: h, .. } = &mut *self.message {
            *h = Some(help.to_string());
        }
        self
    }
    /// A text file that is wrong, with the place.
    pub fn diagnostic(error: impl miette::Diagnostic + Send + Sync + 'static) -> CliError {
        CliError { exit: Exit::Usage, message: Box::new(Message::Diagnostic(miette::Report::new(error))) }
    }
    /// An output that cannot be created.
    pub fn cannot_create(path: &Path, error: &std::io::Error) -> CliError {
        CliError::new(Exit::CannotCreate, format_args!("cannot create {}: {error}", path.display()))
            .help("choose a folder you may write to with --out")
    }
    /// An output that cannot be written.
    pub fn write(path: &Path, error: &std::io::Error) -> CliError {
        CliError::new(Exit::WriteFailed, format_args!("cannot write {}: {error}", path.display()))
            .help("free space or choose another folder with --out")
    }
    /// An input that cannot be read.
    pub fn read(path: &Path, error: &std::io::Error) -> CliError {
        CliError::usage(format_args!("cannot read {}: {error}", path.display()))
    }

    /// Prints the error and gives the exit code.
    pub fn report(self) -> Exit {
        match *self.message {
            Message::Text { message, help } => {
                eprintln!("error: {}", super::output::printable(&message));
                if let Some(help) = help {
                    eprintln!("  help: {}", super::output::printable(&help));
                }
            }
            Message::Diagnostic(report) => eprintln!("{report:?}"),
        }
        self.exit
    }
}
