//! The processes of a control plane, which `tests/cluster/up` starts and watches over.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use uuid::Uuid;

use crate::process::{pause, pid, wait_until_gone};

/// A control plane. It ends when it is dropped, or when the test process ends, however that does:
/// `up -w` sees its standard input end.
#[derive(Debug)]
pub(super) struct ControlPlane {
    directory: PathBuf,
    up: Child,
    again: Mutex<Option<ChildStdin>>,
}

impl ControlPlane {
    /// Starts one on free ports with these definitions, and returns when it is ready.
    ///
    /// # Panics
    /// It does not start.
    pub(super) fn start(definitions: &Path) -> Self {
        let mut said = tempfile::tempfile().expect("a file can be made");
        let mut up = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/up"));
        up.args(["-w", "control-plane"]).arg(definitions);
        up.env("CLUSTER_NAME", format!("test-{}", Uuid::new_v4().simple()));
        // What interrupts the tests must not interrupt it.
        up.process_group(0);
        up.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(duplicate(&said));
        let mut up = up.spawn().expect("bash starts");
        let again = up.stdin.take();
        let mut kubeconfig = String::new();
        let stdout = up.stdout.take().expect("standard output is a pipe");
        BufReader::new(stdout).read_line(&mut kubeconfig).expect("`up` writes text");
        if kubeconfig.is_empty() {
            let mut why = String::new();
            said.rewind().and_then(|()| said.read_to_string(&mut why)).expect("`up` writes text");
            panic!("no control plane:\n{why}");
        }
        let directory =
            Path::new(kubeconfig.trim_end()).parent().expect("a file is in a directory").to_owned();
        Self { directory, up, again: Mutex::new(again) }
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Where `kubectl` may keep what it learnt of this API server. A later one may have its port.
    pub(super) fn discovery(&self) -> PathBuf {
        self.directory.join("discovery")
    }

    pub(super) fn kill_api_server(&self) {
        self.signal(Signal::SIGKILL);
        wait_until_gone(&[self.api_server()]);
    }

    /// Returns at once.
    pub(super) fn start_api_server(&self) {
        let mut again = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        let again = again.as_mut().expect("standard input is a pipe");
        again.write_all(b"apiserver\n").expect("`up` waits for it");
    }

    pub(super) fn pause_api_server(&self) {
        pause(self.api_server());
    }

    pub(super) fn resume_api_server(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        kill(pid(self.api_server()), signal).expect("the API server is there");
    }

    fn api_server(&self) -> u32 {
        let processes = fs::read_to_string(self.directory.join("pids")).expect("`up` records processes");
        let line = processes.lines().find(|line| line.ends_with(" apiserver"));
        let id = line.and_then(|line| line.split(' ').next()?.parse().ok());
        id.expect("the API server was started")
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.again.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.up.wait();
    }
}

fn duplicate(file: &File) -> File {
    file.try_clone().expect("a file can be shared")
}
