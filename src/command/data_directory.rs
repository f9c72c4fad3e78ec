//! The data directory of `up`, and files in it that only its owner can read.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempmail_embedded_postgres::DirectoryLock;

/// The data directory, locked by this process.
pub(super) struct DataDirectory {
    path: PathBuf,
    _lock: DirectoryLock,
}

impl DataDirectory {
    /// Creates the directory if it is missing, and locks it.
    ///
    /// # Errors
    /// It can't be created, or another `up` has locked it.
    pub(super) fn open(requested: Option<&Path>) -> anyhow::Result<Self> {
        let path = match requested {
            Some(path) => path.to_owned(),
            None => default_path()
                .context("there is no home directory: set the data directory with --data-dir")?,
        };
        let path =
            create(&path).with_context(|| format!("can't create the data directory {}", path.display()))?;
        let lock = DirectoryLock::acquire(&path, "up.lock")?;
        Ok(Self { path, _lock: lock })
    }

    /// The absolute path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates the directory without access for others. If this user is root, Postgres runs as another
/// user, who needs to traverse the directory.
fn create(path: &Path) -> std::io::Result<PathBuf> {
    let root = nix::unistd::geteuid().is_root();
    if !path.is_dir() {
        DirBuilder::new().recursive(true).mode(0o755).create(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    let mode = path.metadata()?.permissions().mode();
    if root && mode & 0o001 == 0 {
        fs::set_permissions(path, Permissions::from_mode(mode | 0o011))?;
    }
    path.canonicalize()
}

/// The directory if none is given; `None` if there is no home directory.
pub(super) fn default_path() -> Option<PathBuf> {
    if nix::unistd::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/tempmail"));
    }
    Some(std::env::home_dir()?.join(".local/share/tempmail"))
}

/// The text of a file; `None` if there is no such file.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// Writes or replaces a file that only this user can read, atomically.
pub(super) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let part = write_temporary(path, text)?;
    fs::rename(&part, path)
        .and_then(|()| sync_parent(path))
        .with_context(|| format!("can't write {}", path.display()))
}

/// Writes such a file unless it exists; returns whether it was written.
pub(super) fn write_private_new(path: &Path, text: &str) -> anyhow::Result<bool> {
    let part = write_temporary(path, text)?;
    let linked = fs::hard_link(&part, path);
    fs::remove_file(&part).with_context(|| format!("can't remove {}", part.display()))?;
    match linked {
        Ok(()) => sync_parent(path).map(|()| true).with_context(|| format!("can't write {}", path.display())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("can't write {}", path.display())),
    }
}

fn write_temporary(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    let _ = fs::remove_file(&part);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .with_context(|| format!("can't write {}", part.display()))?;
    Ok(part)
}

fn sync_parent(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(parent)?.sync_all()
}
