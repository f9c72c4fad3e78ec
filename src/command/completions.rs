//! `tempmail completions`: scripts by which shells complete commands and arguments.

use std::io::Write as _;

use clap_complete::{Shell, generate};

/// Prints the script for a shell.
pub(super) fn run(shell: Shell, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut command, "tempmail", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
