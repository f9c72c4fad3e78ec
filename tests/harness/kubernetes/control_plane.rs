//! The processes of a control plane, which `tests/cluster/up` starts and supervises.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::ops::Deref;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::binary::end_of_log;
use crate::process::{pause, pid, wait_until_gone};

/// A control plane. It ends when it is dropped, or when the test process ends in any way: `up -w` ends
/// with its standard input.
#[derive(Debug)]
pub(super) struct ControlPlane {
    directory: PathBuf,
    up: Child,
    /// Names of processes that `up` is to start again.
    restarts: Mutex<Option<ChildStdin>>,
}

impl ControlPlane {
    /// Starts one on free ports with these definitions of kinds, and returns when it is ready.
    ///
    /// # Panics
    /// It does not start.
    pub(super) fn start(definitions: &Path) -> Self {
        let mut stderr = tempfile::tempfile().expect("a file can be made");
        let mut up = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/up"));
        up.args(["-w", "control-plane"]).arg(definitions);
        up.env("CLUSTER_NAME", format!("test-{}", Uuid::new_v4().simple()));
        // Ctrl-C ends the tests, which then end it.
        up.process_group(0);
        up.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(duplicate(&stderr));
        let mut up = up.spawn().expect("bash starts");
        let restarts = up.stdin.take();
        let mut kubeconfig = String::new();
        let stdout = up.stdout.take().expect("standard output is a pipe");
        BufReader::new(stdout).read_line(&mut kubeconfig).expect("`up` writes text");
        if kubeconfig.is_empty() {
            let mut why = String::new();
            stderr.rewind().and_then(|()| stderr.read_to_string(&mut why)).expect("`up` writes text");
            panic!("no control plane:\n{why}");
        }
        let directory =
            Path::new(kubeconfig.trim_end()).parent().expect("a file is in a directory").to_owned();
        Self { directory, up, restarts: Mutex::new(restarts) }
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// Directory for what `kubectl` discovers of this API server.
    pub(super) fn discovery_cache(&self) -> PathBuf {
        self.directory.join("discovery")
    }

    pub(super) fn kill_api_server(&self) {
        self.signal(Signal::SIGKILL);
        wait_until_gone(&[self.api_server()]);
    }

    /// Returns at once.
    pub(super) fn start_api_server(&self) {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let restarts = restarts.as_mut().expect("standard input is a pipe");
        restarts.write_all(b"apiserver\n").expect("`up` waits for it");
    }

    pub(super) fn pause_api_server(&self) {
        pause(self.api_server());
    }

    pub(super) fn resume_api_server(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        kill(pid(self.api_server()), signal).expect("the API server is running");
    }

    fn api_server(&self) -> u32 {
        let processes = fs::read_to_string(self.directory.join("pids")).expect("`up` records processes");
        let line = processes.lines().find(|line| line.ends_with(" apiserver"));
        let id = line.and_then(|line| line.split(' ').next()?.parse().ok());
        id.expect("the API server was started")
    }
}

impl Drop for ControlPlane {
    /// Ends it. Where the test has failed, prints the end of the API server's log, which goes with it.
    #[expect(clippy::print_stderr, reason = "the output of a test that has failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.join("log/apiserver.log")).unwrap_or_default();
            eprintln!("API server:\n{}", end_of_log(&log));
        }
        drop(self.restarts.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.up.wait();
    }
}

fn duplicate(file: &File) -> File {
    file.try_clone().expect("a file can be shared")
}

/// How many there are at once, beside the shared one: each needs 420 MiB.
const MOST: usize = 2;

static PERMITS: Semaphore = Semaphore::const_new(MOST);
/// Those that run and that no test uses.
static IDLE: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// A control plane of one test. It is kept for another test when it is dropped, unless the test failed.
#[derive(Debug)]
pub(super) struct ExclusiveControlPlane {
    /// `None` while it is dropped.
    control_plane: Option<ControlPlane>,
    is_reused: bool,
    reusable: AtomicBool,
    // Dropped last: the next one starts when this one has ended.
    _permit: SemaphorePermit<'static>,
}

impl ExclusiveControlPlane {
    /// An idle one, else what `start` starts; waits while [`MOST`] are in use.
    pub(super) async fn acquire(start: impl AsyncFnOnce() -> ControlPlane) -> Self {
        let permit = PERMITS.acquire().await.expect("the semaphore is never closed");
        Self::with_permit(permit, start).await
    }

    /// Two of them. They are waited for at once, since two tests that each have one would wait for each other.
    pub(super) async fn acquire_two(start: impl AsyncFn() -> ControlPlane + Copy) -> [Self; 2] {
        let mut permits = PERMITS.acquire_many(2).await.expect("the semaphore is never closed");
        let permit = permits.split(1).expect("there are two permits");
        [Self::with_permit(permit, start).await, Self::with_permit(permits, start).await]
    }

    async fn with_permit(
        permit: SemaphorePermit<'static>,
        start: impl AsyncFnOnce() -> ControlPlane,
    ) -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_reused = idle.is_some();
        let control_plane = match idle {
            Some(control_plane) => control_plane,
            None => start().await,
        };
        let reusable = AtomicBool::new(true);
        Self { control_plane: Some(control_plane), is_reused, reusable, _permit: permit }
    }

    /// Whether another test used it before.
    pub(super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// No other test gets it.
    pub(super) fn do_not_reuse(&self) {
        self.reusable.store(false, Ordering::Relaxed);
    }
}

impl Deref for ExclusiveControlPlane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.control_plane.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for ExclusiveControlPlane {
    fn drop(&mut self) {
        // A test that failed may have left the API server paused or dead.
        let is_reusable = self.reusable.load(Ordering::Relaxed) && !std::thread::panicking();
        let idle = self.control_plane.take().filter(|_| is_reusable);
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(idle);
    }
}
