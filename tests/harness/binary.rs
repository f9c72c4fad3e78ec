//! The real program as a child process.

mod installation;
mod starting_role;

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

pub use self::installation::UpInstallation;
pub use self::starting_role::StartingRole;
use crate::process::{self, pid};
use crate::wait::DEADLINE;

/// Longest wait for the output of a process after its exit.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Lines of the log of a process that a failed test shows.
const LOG_LINES: usize = 200;

/// A child process and its output.
#[derive(Debug)]
pub struct Binary {
    child: Child,
    stdout: Arc<Mutex<Vec<String>>>,
    stderr: Arc<Mutex<Vec<String>>>,
    readers: [JoinHandle<()>; 2],
}

impl Binary {
    /// Starts a command.
    ///
    /// # Panics
    /// There is no such program.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let readers = [
            collect(child.stdout.take().expect("standard output is a pipe"), &stdout),
            collect(child.stderr.take().expect("standard error is a pipe"), &stderr),
        ];
        Self { child, stdout, stderr, readers }
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard error so far: the log.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Standard output and standard error so far.
    pub fn output(&self) -> String {
        let stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        format!("{stdout}\n{}", self.stderr())
    }

    /// Waits for a line of exactly this text on standard output.
    ///
    /// # Panics
    /// The process exits or hangs instead.
    pub fn wait_for_line(&mut self, line: &str) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if self.stdout.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|l| l == line) {
                return;
            }
            let ended = self.exit_status();
            assert!(ended.is_none(), "exited with {ended:?}:\n{}", self.output());
            assert!(Instant::now() < deadline, "no line `{line}`:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The exit status, once the rest of the output is read; `None` while it runs.
    ///
    /// # Panics
    /// The process can't be waited for.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("our own child can be waited for");
        if status.is_some() {
            self.wait_for_readers();
        }
        status
    }

    /// Waits until it exits, and reads the rest of its output.
    ///
    /// # Panics
    /// It keeps running.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.exit_status() {
                return status;
            }
            assert!(Instant::now() < deadline, "does not exit:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its child processes may keep the pipes open, so the wait is bounded.
    fn wait_for_readers(&self) {
        let deadline = Instant::now() + OUTPUT_TIMEOUT;
        while self.readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// It has exited.
    pub fn signal(&self, signal: Signal) {
        kill(pid(self.child.id()), signal).expect("the process is there");
    }

    /// Its child processes, and theirs.
    pub fn descendants(&self) -> Vec<u32> {
        process::descendants(self.child.id())
    }

    /// Sends SIGKILL to it and all its descendants, Postgres included, and waits until they are gone.
    pub fn kill_tree(&mut self) {
        let tree = self.descendants();
        process::kill_all(&[self.child.id()]);
        process::kill_all(&tree);
        let _ = self.child.wait();
        process::wait_until_gone(&tree);
    }

    /// Resident memory in bytes.
    ///
    /// # Panics
    /// It has exited.
    pub fn resident_bytes(&self) -> u64 {
        process::resident_bytes(self.child.id()).expect("the process is there")
    }

    /// Sets its limit on open files and returns the previous one.
    ///
    /// # Panics
    /// It has exited, or the limit is above the maximum.
    pub fn set_open_file_limit(&self, limit: u64) -> u64 {
        process::set_open_file_limit(self.child.id(), limit)
    }

    /// Processor time used so far, in steps of 10 ms.
    ///
    /// # Panics
    /// It has exited.
    pub fn cpu_time(&self) -> Duration {
        process::cpu_time(self.child.id()).expect("the process is there")
    }
}

impl Drop for Binary {
    /// Ends it. Where the test has failed, prints whether it had ended, and the end of its log.
    #[expect(clippy::print_stderr, reason = "the output of a test that has failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (status, log) = (self.child.try_wait(), self.stderr());
            eprintln!("process {} ({status:?}):\n{}", self.pid(), end_of_log(&log));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill_tree();
        }
    }
}

/// The last lines of a log, for the output of a test that has failed.
pub(crate) fn end_of_log(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// The built `tempmail` beside the test program; built now if it is missing.
pub fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let test = std::env::current_exe().expect("a process knows its program");
            let profile = test.parent().and_then(Path::parent).expect("tests lie in target/<profile>/deps");
            let program = profile.join("tempmail");
            if !program.exists() {
                let target = profile.parent().expect("a profile lies in the target directory");
                let built = Command::new("cargo")
                    .args(["build", "--package", "tempmail", "--bin", "tempmail", "--target-dir"])
                    .arg(target)
                    .current_dir(env!("CARGO_MANIFEST_DIR"))
                    .status()
                    .expect("cargo runs");
                assert!(built.success(), "tempmail can't be built");
            }
            program
        })
        .clone()
}

fn collect(stream: impl Read + Send + 'static, into: &Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    let into = Arc::clone(into);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    })
}
