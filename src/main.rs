//! tempmail: disposable mailboxes as a platform that a company runs itself. One binary with a
//! subcommand for each role.

use std::process::ExitCode;

fn main() -> ExitCode {
    tempmail::command::run(&tempmail_store::SCHEMA)
}
