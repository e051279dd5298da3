//! The program. Everything is in the library; see its documentation for the map.

use std::process::ExitCode;

fn main() -> ExitCode {
    stdiowatch::cli::run()
}
