//! The real program, as a process of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::contract::Checked;
use crate::wait::DEADLINE;

/// The ports and the directory of one `tempmail up`, for as many starts as a test makes.
#[derive(Debug)]
pub struct Installation {
    directory: tempfile::TempDir,
    _checked: Checked,
    /// SMTP listener.
    pub smtp: SocketAddr,
    /// HTTP listener.
    pub http: SocketAddr,
    /// Probes and metrics.
    pub admin: SocketAddr,
}

impl Installation {
    /// An empty data directory and free ports.
    ///
    /// # Panics
    /// There are none.
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        // Postgres runs as another user where the test is root, and must be able to get here.
        let directory = tempfile::Builder::new()
            .prefix("tempmail-up-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a directory can be made");
        let http = free_port();
        Self { directory, _checked: Checked::new(http), smtp: free_port(), http, admin: free_port() }
    }

    /// What `--data-dir` is given.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// `credentials.json`.
    ///
    /// # Panics
    /// It is not there.
    pub fn credentials(&self) -> Value {
        let text = fs::read(self.data_dir().join("credentials.json")).expect("credentials.json is there");
        serde_json::from_slice(&text).expect("credentials.json is JSON")
    }

    /// The command `tempmail up` over this directory, to be started or changed.
    pub fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.arg("up").arg("--data-dir").arg(self.data_dir());
        command.arg("--smtp").arg(self.smtp.to_string());
        command.arg("--http").arg(self.http.to_string());
        command.arg("--admin").arg(self.admin.to_string());
        command
    }

    /// Starts it and waits for `ready`.
    ///
    /// # Panics
    /// It ends or hangs instead.
    pub fn up(&self, environment: &[(&str, &str)]) -> Binary {
        let mut command = self.command();
        command.envs(environment.iter().copied());
        let mut binary = Binary::spawn(command);
        binary.wait_for_line("ready");
        binary
    }

    /// Every file that is no data of Postgres: logs, credentials, locks.
    pub fn plain_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect_files(&self.data_dir(), &mut files);
        files
    }
}

impl Default for Installation {
    fn default() -> Self {
        Self::new()
    }
}

/// A started process with its output.
#[derive(Debug)]
pub struct Binary {
    child: Child,
    printed: Arc<Mutex<Vec<String>>>,
    logged: Arc<Mutex<Vec<String>>>,
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
        collect(child.stdout.take().expect("standard output is a pipe"), &printed);
        collect(child.stderr.take().expect("standard error is a pipe"), &logged);
        Self { child, printed, logged }
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard error so far: its log.
    pub fn logged(&self) -> String {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// What it wrote so far to standard output and standard error.
    pub fn output(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        format!("{printed}\n{}", self.logged())
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
            let ended = self.child.try_wait().expect("our own child can be waited for");
            assert!(ended.is_none(), "ended with {ended:?}:\n{}", self.output());
            assert!(Instant::now() < give_up, "no line `{line}`:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end by itself.
    ///
    /// # Panics
    /// It goes on.
    pub fn wait(&mut self) -> ExitStatus {
        let give_up = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return status;
            }
            assert!(Instant::now() < give_up, "does not end:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(10));
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
        descendants(self.child.id())
    }

    /// `kill -9` of it and of everything it started, Postgres included, and waits until all of
    /// them are gone.
    pub fn kill_tree(&mut self) {
        let tree = self.descendants();
        let _ = kill(pid(self.child.id()), Signal::SIGKILL);
        for &process in &tree {
            let _ = kill(pid(process), Signal::SIGKILL);
        }
        let _ = self.child.wait();
        let give_up = Instant::now() + DEADLINE;
        while tree.iter().any(|&process| is_alive(process)) {
            assert!(Instant::now() < give_up, "killed processes stay");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Resident memory in octets.
    ///
    /// # Panics
    /// It has ended.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the process is there");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux tells VmRSS");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of KiB");
        kib * 1024
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

fn collect(stream: impl Read + Send + 'static, into: &Arc<Mutex<Vec<String>>>) {
    let into = Arc::clone(into);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    listener.local_addr().expect("a listener has an address")
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).expect("a process id fits"))
}

/// State letter and parent of a process.
fn stat(process: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut after_name = stat.rsplit_once(')')?.1.split_whitespace();
    let state = after_name.next()?.chars().next()?;
    Some((state, after_name.next()?.parse().ok()?))
}

fn is_alive(process: u32) -> bool {
    stat(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

fn descendants(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> =
        processes.filter_map(|process| stat(process).map(|(_, parent)| (process, parent))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    found.split_off(1)
}

fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) {
    if directory.join("PG_VERSION").exists() {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            collect_files(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}
