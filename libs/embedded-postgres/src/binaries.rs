//! The PostgreSQL to run: the first of PATH, Debian's versioned folders and a download that has the
//! version of the data directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::download::{self, DOWNLOAD_MAJOR};
use crate::error::Error;
use crate::progress::Progress;

/// Oldest major version the schema works with.
const OLDEST_MAJOR: u32 = 15;
/// Debian keeps a folder for each major version here.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A folder with `postgres` and `initdb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    folder: PathBuf,
    major: u32,
}

impl Binaries {
    /// The server.
    pub fn postgres(&self) -> PathBuf {
        self.folder.join("postgres")
    }

    /// The program that creates a data directory.
    pub fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.major
    }
}

/// Where to search.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Folders that may hold `postgres`, in order of preference.
    folders: Vec<PathBuf>,
    /// Where a downloaded PostgreSQL is kept.
    downloads: PathBuf,
}

impl Search {
    /// PATH, then Debian's folders; neither with `skip_installed`.
    pub fn new(downloads: PathBuf, skip_installed: bool) -> Self {
        if skip_installed {
            return Self { folders: Vec::new(), downloads };
        }
        let mut folders = on_path(std::env::var_os("PATH").as_deref());
        folders.extend(versioned(Path::new(DEBIAN)));
        Self { folders, downloads }
    }

    /// Binaries for a data directory of the major version `data_major`, or for a new one.
    pub async fn find(
        &self,
        account: &Account,
        data: &Path,
        data_major: Option<u32>,
        progress: Progress,
    ) -> Result<Binaries, Error> {
        for folder in &self.folders {
            if account.check_access(folder).is_err() || !folder.join("initdb").is_file() {
                continue;
            }
            let Some(major) = version_of(account, &folder.join("postgres")).await else { continue };
            if data_major.map_or(major >= OLDEST_MAJOR, |expected| expected == major) {
                return Ok(Binaries { folder: folder.clone(), major });
            }
        }
        match data_major {
            Some(major) if major != DOWNLOAD_MAJOR => {
                Err(Error::VersionNotInstalled { directory: data.to_owned(), major })
            }
            _ => {
                let folder = download::fetch(&self.downloads, progress).await?;
                account.check_access(&folder)?;
                Ok(Binaries { folder, major: DOWNLOAD_MAJOR })
            }
        }
    }
}

/// Folders on PATH that have `postgres`, links resolved: `initdb` looks beside itself.
fn on_path(path: Option<&OsStr>) -> Vec<PathBuf> {
    let Some(path) = path else { return Vec::new() };
    std::env::split_paths(path)
        .filter_map(|folder| folder.join("postgres").canonicalize().ok())
        .filter_map(|postgres| postgres.parent().map(Path::to_owned))
        .collect()
}

/// `<root>/<major>/bin`, newest first.
fn versioned(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = root.read_dir() else { return Vec::new() };
    let mut majors: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    majors.sort_unstable_by(|a, b| b.cmp(a));
    majors.into_iter().map(|major| root.join(major.to_string()).join("bin")).collect()
}

/// The major version of a `postgres` program; `None` if it does not run here.
async fn version_of(account: &Account, postgres: &Path) -> Option<u32> {
    let output = account.command(postgres).arg("--version").output().await.ok()?;
    major_in(std::str::from_utf8(&output.stdout).ok()?)
}

/// The major version in `postgres (PostgreSQL) 15.18 (Debian …)`.
fn major_in(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL) ")?.1;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_major_versions() {
        assert_eq!(major_in("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major_in("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(major_in("something else"), None);
    }

    #[test]
    fn lists_folders_newest_first_with_links_resolved() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for major in ["9", "15", "17", "other"] {
            std::fs::create_dir_all(root.join(major).join("bin")).unwrap();
        }
        std::fs::write(root.join("15/bin/postgres"), "").unwrap();
        assert_eq!(versioned(&root), [root.join("17/bin"), root.join("15/bin"), root.join("9/bin")]);
        let links = root.join("links");
        std::fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink(root.join("15/bin/postgres"), links.join("postgres")).unwrap();
        let path = std::env::join_paths([&root.join("9/bin"), &links]).unwrap();
        assert_eq!(on_path(Some(&path)), [root.join("15/bin")]);
    }
}
