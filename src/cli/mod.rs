//! One file per subcommand.

use crate::exit::Exit;

/// Parses the command line and runs the subcommand.
pub fn main() -> Exit {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["child", "worker"] => crate::measure::child::worker_main(None),
        ["child", "telemetry"] => crate::measure::child::telemetry_main(None),
        _ => Exit::Usage,
    }
}
