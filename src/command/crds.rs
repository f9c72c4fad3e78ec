//! `tempmail crds`

use std::io::Write as _;

/// Prints the custom resource definitions; `charts/tempmail-crds` carries them.
pub fn print() -> anyhow::Result<()> {
    std::io::stdout().write_all(tempmail_crds::manifests()?.as_bytes())?;
    Ok(())
}
