//! The user that Postgres runs as: that of this process, or an unprivileged one if that is root.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

use nix::unistd::{Uid, User, geteuid};
use tokio::process::Command;

use crate::error::Error;

/// The user that Postgres runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// Whether this process runs as another user, that is as root.
    differs: bool,
}

impl Account {
    /// This process' user; for root `postgres`, else `nobody`.
    pub fn choose() -> Result<Self, Error> {
        let euid = geteuid();
        if !euid.is_root() {
            let name = User::from_uid(euid).ok().flatten().map_or_else(|| euid.to_string(), |user| user.name);
            return Ok(Self {
                name,
                uid: euid.as_raw(),
                gid: nix::unistd::getegid().as_raw(),
                differs: false,
            });
        }
        ["postgres", "nobody"]
            .into_iter()
            .filter_map(|name| User::from_name(name).ok().flatten())
            .find(|user| user.uid != Uid::from_raw(0))
            .map(|user| Self {
                name: user.name,
                uid: user.uid.as_raw(),
                gid: user.gid.as_raw(),
                differs: true,
            })
            .ok_or(Error::NoUser)
    }

    /// Its user id.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs as this user, in `/`, which every user can enter, and in a process group
    /// of its own, so that Ctrl-C at the terminal does not reach it.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(std::process::Stdio::null()).process_group(0);
        // Settings for other servers must not affect this one.
        for name in ["PGDATA", "PGPORT", "PGOPTIONS", "PGHOST", "PGUSER", "PGDATABASE"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C");
        if self.differs {
            // The standard library drops root's supplementary groups along with its uid.
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Creates a directory that only this user can enter, or takes ownership of an existing one.
    pub fn create_private_directory(&self, path: &Path) -> Result<(), Error> {
        if !path.is_dir() {
            DirBuilder::new().mode(0o700).create(path).map_err(Error::file("can't create", path))?;
        }
        self.change_owner(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o700))
            .map_err(Error::file("can't set the mode of", path))
    }

    /// Makes this user the owner of a file or directory.
    pub fn change_owner(&self, path: &Path) -> Result<(), Error> {
        if self.differs {
            lchown(path, Some(self.uid), Some(self.gid))
                .map_err(Error::file("can't change the owner of", path))?;
        }
        Ok(())
    }

    /// Checks that this user can enter every directory on the way to `path`.
    ///
    /// # Errors
    /// [`Error::DirectoryNotAccessible`] with the first one that it can't enter.
    pub fn check_access(&self, path: &Path) -> Result<(), Error> {
        let inaccessible = path
            .ancestors()
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .find(|directory| !self.can_enter(directory));
        match inaccessible {
            Some(directory) => Err(Error::DirectoryNotAccessible {
                user: self.name.clone(),
                directory: directory.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Whether the mode of a directory lets this user enter; one whose mode can't be read counts as open.
    fn can_enter(&self, directory: &Path) -> bool {
        if !self.differs || directory.as_os_str().is_empty() {
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

/// Creates the outer directory, closed to other users. For root it is passable, so that the account
/// reaches the directories in it.
pub(crate) fn create_outer_directory(account: &Account, path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(Error::file("can't create", path))?;
    let mode = if account.differs { 0o711 } else { 0o700 };
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(Error::file("can't set the mode of", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_directory_that_the_user_cannot_enter() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let stranger = Account { name: "stranger".into(), uid: 54_321, gid: 54_321, differs: true };
        std::fs::set_permissions(outer.path(), Permissions::from_mode(0o711)).unwrap();
        std::fs::set_permissions(outer.path().join("a"), Permissions::from_mode(0o700)).unwrap();
        match stranger.check_access(&inner) {
            Err(Error::DirectoryNotAccessible { directory, .. }) => {
                assert_eq!(directory, outer.path().join("a"));
            }
            other => panic!("{other:?}"),
        }
        std::fs::set_permissions(outer.path().join("a"), Permissions::from_mode(0o711)).unwrap();
        stranger.check_access(&inner).unwrap();
    }
}
