//! The directory of a server: its lock, the data (a "cluster" in Postgres' words), the superuser's password, and files that
//! are complete or absent.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rand::TryRng as _;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::connection::SUPERUSER;
use crate::error::Error;
use crate::process;

/// A lock on a directory; released on drop, and by the kernel when the process is killed.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    /// Acquires the lock `file` in `directory`, which exists, and writes this process' id into it.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process holds it, [`Error::File`].
    pub fn acquire(directory: &Path, file: &str) -> Result<Self, Error> {
        let path = directory.join(file);
        let failed = |action| Error::file(action, &path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed("can't open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let pid = file.read_to_string(&mut holder).ok().and_then(|_| holder.trim().parse().ok());
                return Err(Error::InUse { directory: directory.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(failed("can't lock")(error)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed("can't write"))?;
        Ok(Self { file })
    }
}

impl Drop for DirectoryLock {
    /// Closing the file is not enough: a child that another thread is starting has all open files
    /// until it executes its program, and would keep the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

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
pub(crate) async fn create_data(
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
        process::stop_orphans(account, &new, |_| {}).await?;
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

/// Writes a file that only this user can read. It is renamed into place, so it is never partial.
fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    write(path, text, 0o600)
}

/// Writes a file with this mode. It is renamed into place, so it is never partial.
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
        .map_err(Error::file("can't create", &part))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(Error::file("can't write", &part))?;
    fs::rename(&part, path).map_err(Error::file("can't create", path))
}

/// Makes a rename in this directory durable.
fn sync_directory(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(Error::file("can't sync", path))
}

/// `N` random bytes as hex digits.
pub(crate) fn random_hex<const N: usize>() -> Result<String, Error> {
    let mut random = [0; N];
    rand::rngs::SysRng.try_fill_bytes(&mut random).map_err(|_| Error::NoRandomness)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_pid_of_the_holder() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(directory.path(), "lock").unwrap();
        match DirectoryLock::acquire(directory.path(), "lock") {
            Err(Error::InUse { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(lock);
        DirectoryLock::acquire(directory.path(), "lock").unwrap();
    }

    #[test]
    fn releases_on_drop_although_a_child_has_the_file_open() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(directory.path(), "lock").unwrap();
        let in_child = lock.file.try_clone().unwrap();
        drop(lock);
        DirectoryLock::acquire(directory.path(), "lock").unwrap();
        drop(in_child);
    }
}
