//! The data directory (a "cluster" in Postgres' words) and the superuser's password.

use std::fs;
use std::path::Path;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::connection_url::SUPERUSER;
use crate::error::Error;
use crate::file::{sync_directory, write_private};
use crate::orphan;
use crate::random::random_hex;

/// Major version of PostgreSQL that a data directory belongs to; `None` if there is no data yet.
pub(crate) fn major_version(data: &Path) -> Result<Option<u32>, Error> {
    let path = data.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => Err(Error::file("can't parse", &path)(std::io::ErrorKind::InvalidData.into())),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("can't read", &path)(error)),
    }
}

/// The superuser's password: read from its file, or generated if there is no data yet.
pub(crate) fn password(path: &Path, has_data: bool) -> Result<String, Error> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::file("can't read", path)(error));
        }
        _ if has_data => return Err(Error::PasswordMissing(path.to_owned())),
        _ => {}
    }
    let password = random_hex::<24>()?;
    write_private(path, &password)?;
    Ok(password)
}

/// Creates the data directory `data` under a temporary name and renames it, so that it is never
/// partial.
pub(crate) async fn create(
    account: &Account,
    binaries: &Binaries,
    directory: &Path,
    password: &str,
    durable: bool,
) -> Result<(), Error> {
    // `initdb` needs an empty directory that its user owns, and the password in a file it can read.
    let new = directory.join("data.new");
    if new.exists() {
        // An `initdb` that was interrupted may have left a server running in it.
        orphan::stop(account, &new, |_| {}).await?;
        fs::remove_dir_all(&new).map_err(Error::file("can't remove", &new))?;
    }
    account.create_private_directory(&new)?;
    let password_file = directory.join("password.initdb");
    write_private(&password_file, password)?;
    account.change_owner(&password_file)?;
    let mut command = account.command(&binaries.initdb());
    command
        .kill_on_drop(true)
        .args(["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--username", SUPERUSER])
        .arg("--pwfile")
        .arg(&password_file)
        .arg("--pgdata")
        .arg(&new);
    if !durable {
        command.arg("--no-sync");
    }
    let output = command.output().await;
    let _ = fs::remove_file(&password_file);
    let output = output.map_err(Error::file("can't run", &binaries.initdb()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last_line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(Error::InitdbFailed(last_line.to_owned()));
    }
    let data = directory.join("data");
    fs::rename(&new, &data).map_err(Error::file("can't create", &data))?;
    sync_directory(directory)
}
