//! One file per subcommand.

use std::path::Path;

use crate::exit::Exit;
use crate::{backend, discover, measure};

/// Parses the command line and runs the subcommand.
pub fn main() -> Exit {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| arguments.iter().position(|a| a == flag).and_then(|i| arguments.get(i + 1));
    let simulate = after("--simulate").map(String::as_str);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["child", "worker", ..] => measure::child::worker_main(simulate),
        ["child", "telemetry", ..] => measure::child::telemetry_main(simulate),
        ["child", "discover", ..] => discover(simulate, after("--storage-dir").map(Path::new)),
        _ => Exit::Usage,
    }
}

fn discover(simulate: Option<&str>, storage: Option<&Path>) -> Exit {
    measure::child::end_with_supervisor();
    let Ok(backends) = backend::all(simulate) else { return Exit::Usage };
    let options = discover::Options { root: "/".into(), storage: storage.map(Path::to_owned) };
    let inventory = discover::discover(&backends, &options);
    match serde_json::to_writer(std::io::stdout(), &inventory) {
        Ok(()) => Exit::Accepted,
        Err(_) => Exit::Internal,
    }
}
