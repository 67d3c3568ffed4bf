//! One file per subcommand.

use crate::exit::Exit;

/// Parses the command line and runs the subcommand.
pub fn main() -> Exit {
    Exit::Usage
}
