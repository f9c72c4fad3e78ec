//! Files that are either complete or absent.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Writes a file that only this user can read. It is renamed into place, so it is never partial.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
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
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    fs::File::open(path).and_then(|directory| directory.sync_all()).map_err(Error::file("can't sync", path))
}
