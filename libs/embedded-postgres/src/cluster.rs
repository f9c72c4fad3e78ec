//! The data directory and its password.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::settings::random_hex;
use crate::{Error, leftover};

/// The database superuser.
pub(crate) const SUPERUSER: &str = "tempmail";

/// Major version that made a data directory; `None` where there is none yet.
pub(crate) fn made_by(data: &Path) -> Result<Option<u32>, Error> {
    let path = data.join("PG_VERSION");
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => Err(Error::file("can't understand", &path)(std::io::ErrorKind::InvalidData.into())),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("can't read", &path)(error)),
    }
}

/// The superuser's password: kept, or new where there is no data yet.
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

/// Makes a data directory: beside its place and then renamed, so that one that is there is
/// whole.
pub(crate) async fn initialise(
    account: &Account,
    binaries: &Binaries,
    directory: &Path,
    password: &str,
    durable: bool,
) -> Result<(), Error> {
    // `initdb` wants an empty directory of its own user, and the password in a file it can read.
    let new = directory.join("data.new");
    if new.exists() {
        // An `initdb` that was cut short may have a server working in it still.
        leftover::clear(account, &new, |_| {}).await?;
        fs::remove_dir_all(&new).map_err(Error::file("can't remove", &new))?;
    }
    account.own_directory(&new)?;
    let password_file = directory.join("password.initdb");
    write_private(&password_file, password)?;
    account.give(&password_file)?;
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
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(Error::InitdbFailed(last.to_owned()));
    }
    let data = directory.join("data");
    fs::rename(&new, &data).map_err(Error::file("can't make", &data))?;
    sync_directory(directory)
}

/// Writes a file that only this user can read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    write(path, text, 0o600)
}

/// Writes a file with this mode, whole or not at all.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let _ = fs::remove_file(&part);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&part)
        .map_err(Error::file("can't make", &part))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(Error::file("can't write", &part))?;
    fs::rename(&part, path).map_err(Error::file("can't make", path))
}

fn sync_directory(path: &Path) -> Result<(), Error> {
    fs::File::open(path).and_then(|directory| directory.sync_all()).map_err(Error::file("can't sync", path))
}
