//! The user that Postgres runs as: ourselves, or as root an unprivileged one.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

use nix::unistd::{Uid, User, geteuid};
use tokio::process::Command;

use crate::Error;

/// The user that Postgres runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// Whether it is another than this process'.
    other: bool,
}

impl Account {
    /// This process' user, or as root `postgres`, else `nobody`.
    pub fn choose() -> Result<Self, Error> {
        let euid = geteuid();
        if !euid.is_root() {
            let name = User::from_uid(euid).ok().flatten().map_or_else(|| euid.to_string(), |user| user.name);
            return Ok(Self { name, uid: euid.as_raw(), gid: nix::unistd::getegid().as_raw(), other: false });
        }
        ["postgres", "nobody"]
            .into_iter()
            .filter_map(|name| User::from_name(name).ok().flatten())
            .find(|user| user.uid != Uid::from_raw(0))
            .map(|user| Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw(), other: true })
            .ok_or(Error::NoUser)
    }

    /// Its user id.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs as this user, in a process group of its own (so that Ctrl-C at the
    /// terminal reaches this process only) and away from directories it may not enter.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(std::process::Stdio::null()).process_group(0);
        // Settings of other servers must not reach this one.
        for name in ["PGDATA", "PGPORT", "PGOPTIONS", "PGHOST", "PGUSER", "PGDATABASE"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C");
        if self.other {
            // The standard library drops root's supplementary groups along with its uid.
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Makes a directory that only this user can enter, or takes over one that is there.
    pub fn own_directory(&self, path: &Path) -> Result<(), Error> {
        if !path.is_dir() {
            DirBuilder::new().mode(0o700).create(path).map_err(Error::file("can't make", path))?;
        }
        self.give(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o700))
            .map_err(Error::file("can't close", path))
    }

    /// Gives a file or directory to this user.
    pub fn give(&self, path: &Path) -> Result<(), Error> {
        if self.other {
            lchown(path, Some(self.uid), Some(self.gid))
                .map_err(Error::file("can't change the owner of", path))?;
        }
        Ok(())
    }

    /// Refuses a path that this user can't reach, naming the directory that is closed to it.
    pub fn check_reaches(&self, path: &Path) -> Result<(), Error> {
        let closed =
            path.ancestors().collect::<Vec<_>>().into_iter().rev().find(|directory| !self.enters(directory));
        match closed {
            Some(directory) => Err(Error::DirectoryNotAccessible {
                user: self.name.clone(),
                directory: directory.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Whether the mode of a directory lets this user in; what can't be read counts as open.
    fn enters(&self, directory: &Path) -> bool {
        if !self.other || directory.as_os_str().is_empty() {
            return true;
        }
        let Ok(metadata) = directory.metadata() else { return true };
        let bit = if metadata.uid() == self.uid {
            0o100
        } else if metadata.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        metadata.mode() & bit != 0
    }
}

/// Makes the outer directory: closed to others, except that as root the account must get
/// through it to its own parts.
pub(crate) fn make_outer_directory(account: &Account, path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(Error::file("can't make", path))?;
    let mode = if account.other { 0o711 } else { 0o700 };
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::file("can't open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_that_is_closed_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let stranger = Account { name: "stranger".into(), uid: 54_321, gid: 54_321, other: true };
        std::fs::set_permissions(outer.path(), Permissions::from_mode(0o711)).unwrap();
        std::fs::set_permissions(outer.path().join("a"), Permissions::from_mode(0o700)).unwrap();
        match stranger.check_reaches(&inner) {
            Err(Error::DirectoryNotAccessible { directory, .. }) => {
                assert_eq!(directory, outer.path().join("a"))
            }
            other => panic!("{other:?}"),
        }
        std::fs::set_permissions(outer.path().join("a"), Permissions::from_mode(0o711)).unwrap();
        stranger.check_reaches(&inner).unwrap();
    }
}
