//! The real program, as a process of its own.

mod installation;

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

pub use self::installation::Installation;
use crate::process::{self, pid};
use crate::wait::DEADLINE;

/// Longest that what an ended process wrote is read for.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// A started process with its output.
#[derive(Debug)]
pub struct Binary {
    child: Child,
    printed: Arc<Mutex<Vec<String>>>,
    logged: Arc<Mutex<Vec<String>>>,
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
        let (printed, logged) = (Arc::default(), Arc::default());
        let readers = [
            collect(child.stdout.take().expect("standard output is a pipe"), &printed),
            collect(child.stderr.take().expect("standard error is a pipe"), &logged),
        ];
        Self { child, printed, logged, readers }
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard error so far: its log.
    pub fn stderr(&self) -> String {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// What it wrote so far to standard output and standard error.
    pub fn output(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        format!("{printed}\n{}", self.stderr())
    }

    /// Waits for a line of exactly this text on standard output.
    ///
    /// # Panics
    /// It ends or hangs instead.
    pub fn wait_for_line(&mut self, line: &str) {
        let give_up = Instant::now() + DEADLINE;
        loop {
            if self.printed.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|l| l == line) {
                return;
            }
            let ended = self.exit_status();
            assert!(ended.is_none(), "ended with {ended:?}:\n{}", self.output());
            assert!(Instant::now() < give_up, "no line `{line}`:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// How it ended, if it did.
    ///
    /// # Panics
    /// The operating system does not tell.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child can be waited for")
    }

    /// Waits for its end by itself, and until all that it wrote is read.
    ///
    /// # Panics
    /// It goes on.
    pub fn wait(&mut self) -> ExitStatus {
        let give_up = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.exit_status() {
                self.wait_for_readers();
                return status;
            }
            assert!(Instant::now() < give_up, "does not end:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What outlives it may keep its pipes open: then there is nothing more of its own to come.
    fn wait_for_readers(&self) {
        let give_up = Instant::now() + READ_WITHIN;
        while self.readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// It has ended already.
    pub fn signal(&self, signal: Signal) {
        kill(pid(self.child.id()), signal).expect("the process is there");
    }

    /// The processes it started, and theirs.
    pub fn descendants(&self) -> Vec<u32> {
        process::descendants(self.child.id())
    }

    /// `kill -9` of it and of everything it started, Postgres included, and waits until all of
    /// them are gone.
    pub fn kill_tree(&mut self) {
        let tree = self.descendants();
        process::kill_all(&[self.child.id()]);
        process::kill_all(&tree);
        let _ = self.child.wait();
        process::wait_until_gone(&tree);
    }

    /// Resident memory in octets.
    ///
    /// # Panics
    /// It has ended.
    pub fn resident_bytes(&self) -> u64 {
        process::resident_bytes(self.child.id()).expect("the process is there")
    }

    /// Sets how many files it may have open, and returns how many it might before.
    ///
    /// # Panics
    /// It has ended, or may not have so many.
    pub fn set_open_file_limit(&self, most: u64) -> u64 {
        process::set_open_file_limit(self.child.id(), most)
    }

    /// Processor time that it used so far, in steps of 10 ms.
    ///
    /// # Panics
    /// It has ended.
    pub fn cpu_time(&self) -> Duration {
        process::cpu_time(self.child.id()).expect("the process is there")
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill_tree();
        }
    }
}

/// The built `tempmail`, next to the test's own program; built now if it is not there.
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
