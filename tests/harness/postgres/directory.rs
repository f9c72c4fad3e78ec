//! The directory of a server that no test outlives.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

/// Waits for the test process, which holds the other end of standard input, to end or to let go
/// of it; nothing in it runs when `exit` ends it. The number in the file may by now be that of
/// another process, which works elsewhere.
const CLEAN_UP: &str = r#"
    read -r _
    pid=$(head -n 1 "$1/data/postmaster.pid") && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ] && kill -QUIT "$pid"
    rm -rf "$1"
"#;

/// An empty directory. A server in its `data` is stopped, and all of it removed, when it is
/// dropped or the test process ends, however that does.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    _alive: ChildStdin,
}

impl Directory {
    /// A new one.
    pub(super) fn make() -> Self {
        // Postgres runs as another user where the test is root, and must be able to get here.
        let path = tempfile::Builder::new()
            .prefix("tempmail-tests-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .and_then(|directory| directory.keep().canonicalize())
            .expect("a directory for Postgres can be made");
        let mut clean_up = Command::new("sh");
        clean_up.args(["-c", CLEAN_UP, "sh"]).arg(&path).current_dir("/");
        // What interrupts the tests must not interrupt it.
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
