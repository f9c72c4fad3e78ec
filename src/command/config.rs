//! `tempmail config`

use std::io::Write as _;

use tempmail_runtime::config::reference;

/// Prints the reference of all settings; `docs/configuration.md` is this text.
pub fn print() -> anyhow::Result<()> {
    std::io::stdout().write_all(reference().as_bytes())?;
    Ok(())
}
