//! Where servers keep their files: a directory that is removed at the end of the test run, or a small disk in memory, which a
//! test fills.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use nix::unistd::geteuid;
use rustix::fs::statvfs;

/// Waits until the test process, which holds the other end of standard input, exits or closes it: a
/// destructor would not run on `exit`. The process id in the file may belong to another process by
/// now, which has another working directory.
const CLEAN_UP: &str = r#"
    read -r _
    pid=$(head -n 1 "$1/data/postmaster.pid") && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ] && kill -QUIT "$pid"
    ! mountpoint -q "$1" || umount --lazy "$1"
    rm -rf "$1"
"#;

/// A directory in memory on most Linux systems.
const MEMORY: &str = "/dev/shm";
/// Free space there from which servers use it, bytes: many times what the databases of a run take at a time.
const ENOUGH_MEMORY: u64 = 8 << 30;

/// Where the directories of servers are made: in memory if there is enough. A run creates and deletes a million files,
/// which takes a disk's file system a third of the time of all processors.
fn parent() -> PathBuf {
    let free = statvfs(MEMORY).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
    if free >= ENOUGH_MEMORY { MEMORY.into() } else { std::env::temp_dir() }
}

/// The directory of a server. On drop, and when the test process ends in any way, the server in its
/// `data` is stopped and the directory removed.
#[derive(Debug)]
pub(super) struct ServerDirectory {
    path: PathBuf,
    _alive: ChildStdin,
}

impl ServerDirectory {
    /// A new, empty directory.
    pub(super) fn create() -> Self {
        // If the test is root, Postgres runs as another user, who needs to traverse the directory.
        let path = tempfile::Builder::new()
            .prefix("tempmail-tests-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(parent())
            .and_then(|directory| directory.keep().canonicalize())
            .expect("a directory for Postgres can be made");
        let mut clean_up = Command::new("sh");
        clean_up.args(["-c", CLEAN_UP, "sh"]).arg(&path).current_dir("/");
        // An interrupt of the tests must not interrupt it.
        clean_up.process_group(0);
        let clean_up = clean_up.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let alive = clean_up.expect("sh starts").stdin.take().expect("standard input is a pipe");
        Self { path, _alive: alive }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// A small disk in memory. It is unmounted on drop.
#[derive(Debug)]
pub(super) struct SmallDisk {
    place: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk of this size in MiB at a directory.
    ///
    /// # Panics
    /// This user may not, neither directly nor with `sudo`.
    pub(super) fn mount(place: &Path, mebibytes: u32) -> Self {
        let options = format!("size={mebibytes}m,mode=755,uid={},gid={}", geteuid(), nix::unistd::getegid());
        let mut mount = as_root("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tempmail-tests"]).arg(place);
        assert!(mount.status().expect("it starts").success(), "mounting a disk needs root, or sudo");
        Self { place: place.to_owned() }
    }

    /// Writes a file until the disk is full.
    ///
    /// # Panics
    /// It can't be written for another reason.
    pub(super) fn fill(&self) {
        let mut file = fs::File::create(self.ballast()).expect("a file can be created");
        let full = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    }

    /// Removes that file.
    ///
    /// # Panics
    /// There is none.
    pub(super) fn free(&self) {
        fs::remove_file(self.ballast()).expect("the disk was filled");
    }

    fn ballast(&self) -> PathBuf {
        self.place.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since the processes of a killed server may still be ending.
        let _ = as_root("umount").arg("--lazy").arg(&self.place).status();
    }
}

fn as_root(program: &str) -> Command {
    if geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}
