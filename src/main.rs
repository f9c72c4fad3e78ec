//! tempmail: disposable mailboxes as a platform that a company runs itself. One binary; a
//! subcommand a role.

mod bus;
mod clock_sync;
mod command;
mod open_files;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return fail("another TLS provider is installed");
    }
    match command::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn fail(why: &str) -> ExitCode {
    // Nowhere is left to report to if standard error is closed.
    let _ = writeln!(std::io::stderr(), "tempmail: {why}");
    ExitCode::FAILURE
}
