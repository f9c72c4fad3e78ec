//! What all benchmarks need of the machine: a directory on a disk, and the program.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tempfile::TempDir;

/// A new directory on a disk that all users can enter, since some servers change their user.
///
/// # Errors
/// It would be on a tmpfs, where `fsync` costs nothing.
pub fn work_directory(parent: &Path) -> anyhow::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("tempmail-bench-").tempdir_in(parent)?;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    ensure!(
        statfs(directory.path())?.filesystem_type() != TMPFS_MAGIC,
        "{} is in memory: name a directory on a disk with --work-dir",
        parent.display()
    );
    Ok(directory)
}

/// Cores, load average and directory, which the figures depend on.
///
/// # Errors
/// The operating system does not say.
pub fn describe_machine(directory: &Path) -> anyhow::Result<String> {
    let cores = std::thread::available_parallelism()?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    Ok(format!("{cores} cores, load average {load}, files in {}", directory.display()))
}

/// The path of tempmail: the one given, or beside this program.
///
/// # Errors
/// The system does not say where this program is.
pub fn tempmail_program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    given.map_or_else(|| Ok(env::current_exe()?.with_file_name("tempmail")), |given| Ok(given.to_owned()))
}
