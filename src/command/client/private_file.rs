//! Files with a token, which nobody else may read.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::failure::ClientFailure;

/// Bytes of a file that are read.
const FILE_MAX: u64 = 64 << 10;
/// Permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// The text of a file of this user (or of root) that nobody else may read or write; `None` where there is none.
///
/// # Errors
/// Others may read it; it can't be read.
pub(super) fn read(path: &Path) -> Result<Option<String>, ClientFailure> {
    let unreadable =
        |error: std::io::Error| ClientFailure::Usage(format!("can't read {}: {error}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    // Of the file that is open: another one may have its name by now.
    let metadata = file.metadata().map_err(unreadable)?;
    let user = nix::unistd::geteuid().as_raw();
    if ![user, 0].contains(&metadata.uid()) {
        return Err(ClientFailure::Usage(format!("{} belongs to another user", path.display())));
    }
    if metadata.mode() & OTHERS != 0 {
        let path = path.display();
        return Err(ClientFailure::Usage(format!(
            "{path} has a token and others may read it: `chmod 600 {path}`"
        )));
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn reads_a_file_that_only_its_owner_may_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.json");
        assert!(read(&path).unwrap().is_none());
        write(&path, "text").unwrap();
        for (mode, is_private) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)]
        {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), is_private, "{mode:o}");
        }
    }
}
