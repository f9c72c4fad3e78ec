//! tempmail: disposable mailboxes as a platform that a company runs itself. One binary with a
//! subcommand for each role.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use tempmail::command::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, there is nowhere left to report to.
            let _ = writeln!(std::io::stderr(), "tempmail: {error:#}");
            ExitCode::FAILURE
        }
    }
}
