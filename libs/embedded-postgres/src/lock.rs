//! One process per directory, by a lock that the kernel releases when its holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::Error;

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
