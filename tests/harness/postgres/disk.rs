//! A small disk in memory, which a test fills.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::geteuid;

/// See the module. It is unmounted on drop.
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
