//! One process, for as many starts as a test makes.

use std::net::SocketAddr;
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::net::TcpStream;

use crate::Binary;
use crate::binary::program;
use crate::contract::ValidatedServer;
use crate::port::free_port;
use crate::wait::eventually;

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `tempmail api`.
    Api,
    /// `tempmail ingest`.
    Ingest,
    /// `tempmail worker`.
    Worker,
    /// `tempmail operator`.
    Operator,
}

impl Role {
    fn command(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Ingest => "ingest",
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }

    /// What sets the address of its listener, where it has one.
    fn listen(self) -> Option<&'static str> {
        match self {
            Self::Api => Some("TEMPMAIL_HTTP__LISTEN"),
            Self::Ingest => Some("TEMPMAIL_SMTP__LISTEN"),
            Self::Worker | Self::Operator => None,
        }
    }
}

/// How a process ended that was told to.
#[derive(Debug)]
pub struct Termination {
    /// Its exit status.
    pub status: ExitStatus,
    /// Time from the signal to the end.
    pub took: Duration,
}

/// What the lines of a log have that tell of something wrong.
const COMPLAINTS: [&str; 3] = ["WARN", "ERROR", "panicked"];

/// A process at its addresses, or the place of one that ended.
#[derive(Debug)]
pub struct RoleProcess {
    role: Role,
    listen: SocketAddr,
    admin: SocketAddr,
    environment: Vec<(String, String)>,
    http_client: reqwest::Client,
    _validated: ValidatedServer,
    starts: Mutex<Starts>,
}

#[derive(Debug)]
struct Starts {
    binary: Binary,
    /// Logs of those before it.
    log: String,
}

impl RoleProcess {
    /// Starts a process of these settings on free ports.
    pub(crate) fn start(
        role: Role,
        mut environment: Vec<(String, String)>,
        http_client: reqwest::Client,
    ) -> Self {
        let (listen, admin) = (free_port(), free_port());
        environment.push(("TEMPMAIL_ADMIN__LISTEN".to_owned(), admin.to_string()));
        if let Some(name) = role.listen() {
            environment.push((name.to_owned(), listen.to_string()));
        }
        let starts = Starts { binary: spawn(role, &environment), log: String::new() };
        let (_validated, starts) = (ValidatedServer::new(listen), Mutex::new(starts));
        Self { role, listen, admin, environment, http_client, _validated, starts }
    }

    /// What it does.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its listener for clients.
    ///
    /// # Panics
    /// The role has none.
    pub fn listen(&self) -> SocketAddr {
        assert!(self.role.listen().is_some(), "this role has no clients");
        self.listen
    }

    /// Its listener for probes and metrics.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Process id, of the last start.
    pub fn pid(&self) -> u32 {
        self.with(|starts| starts.binary.pid())
    }

    /// Returns when it is ready and its listener takes connections.
    pub(crate) async fn wait_until_started(&self) {
        self.wait_until_ready().await;
        if self.role.listen().is_some() {
            eventually("a listener", || async { TcpStream::connect(self.listen).await.ok() }).await;
        }
    }

    /// Returns when `/readyz` says that it is ready.
    ///
    /// # Panics
    /// It ends or hangs instead.
    pub async fn wait_until_ready(&self) {
        eventually("a process is ready", || async {
            let ended = self.with(|starts| starts.binary.exit_status());
            assert!(ended.is_none(), "{:?} ended with {ended:?}:\n{}", self.role, self.log());
            self.is_ready().await.then_some(())
        })
        .await;
    }

    /// Whether `/readyz` says that it is ready.
    pub async fn is_ready(&self) -> bool {
        let probe = self.http_client.get(format!("http://{}/readyz", self.admin)).send().await;
        probe.is_ok_and(|answer| answer.status().is_success())
    }

    /// What `/readyz` says; `None` where it does not answer yet.
    pub async fn readyz(&self) -> Option<String> {
        let probe = self.http_client.get(format!("http://{}/readyz", self.admin)).send().await;
        probe.ok()?.text().await.ok()
    }

    /// `/metrics`.
    ///
    /// # Panics
    /// It does not answer.
    pub async fn metrics(&self) -> String {
        let answer = self.http_client.get(format!("http://{}/metrics", self.admin)).send().await;
        answer.expect("a process answers").text().await.expect("metrics are text")
    }

    /// A metric, summed over its labels; 0 where there is none of that name yet.
    ///
    /// # Panics
    /// It does not answer.
    pub async fn metric(&self, name: &str) -> f64 {
        let metrics = self.metrics().await;
        let samples = metrics.lines().filter_map(|line| line.strip_prefix(name));
        let samples = samples.filter(|rest| rest.starts_with([' ', '{']));
        samples.filter_map(|rest| rest.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// What it logged, in all its starts.
    pub fn log(&self) -> String {
        self.with(|starts| format!("{}{}", starts.log, starts.binary.stderr()))
    }

    /// Resident memory in octets.
    ///
    /// # Panics
    /// It has ended.
    pub fn resident_bytes(&self) -> u64 {
        self.with(|starts| starts.binary.resident_bytes())
    }

    /// Sets how many files it may have open, and returns how many it might before. Those that are open
    /// stay so.
    ///
    /// # Panics
    /// It has ended, or may not have so many.
    pub fn set_open_file_limit(&self, most: u64) -> u64 {
        self.with(|starts| starts.binary.set_open_file_limit(most))
    }

    /// Processor time that it used since its start, in steps of 10 ms.
    ///
    /// # Panics
    /// It has ended.
    pub fn cpu_time(&self) -> Duration {
        self.with(|starts| starts.binary.cpu_time())
    }

    /// Sends it a signal, as SIGSTOP and SIGCONT.
    ///
    /// # Panics
    /// It has ended.
    pub fn signal(&self, signal: Signal) {
        self.with(|starts| {
            assert!(starts.binary.exit_status().is_none(), "{:?} has ended", self.role);
            starts.binary.signal(signal);
        });
    }

    /// `kill -9`; returns when it is gone.
    ///
    /// # Panics
    /// It has ended already, or stays.
    pub async fn kill(&self) {
        self.signal(Signal::SIGKILL);
        self.wait_for_exit().await;
    }

    /// Tells it to stop (SIGTERM), and returns when it is gone.
    ///
    /// # Panics
    /// It has ended already, or stays.
    pub async fn terminate(&self) -> Termination {
        let begun = Instant::now();
        self.signal(Signal::SIGTERM);
        let status = self.wait_for_exit().await;
        Termination { status, took: begun.elapsed() }
    }

    /// Starts it again at its addresses, and returns when it is ready. One that runs is killed.
    ///
    /// # Panics
    /// It ends or hangs instead.
    pub async fn restart(&self) {
        if self.with(|starts| starts.binary.exit_status()).is_none() {
            self.kill().await;
        }
        self.with(|starts| {
            starts.log.push_str(&starts.binary.stderr());
            starts.log.push('\n');
            starts.binary = spawn(self.role, &self.environment);
        });
        self.wait_until_started().await;
    }

    /// Returns when it has ended, by itself or because it was told to.
    ///
    /// # Panics
    /// It goes on.
    pub async fn wait_for_exit(&self) -> ExitStatus {
        eventually("a process ends", || async { self.with(|starts| starts.binary.exit_status()) }).await
    }

    fn with<T>(&self, look: impl FnOnce(&mut Starts) -> T) -> T {
        look(&mut self.starts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn spawn(role: Role, environment: &[(String, String)]) -> Binary {
    let mut command = Command::new(program());
    command.arg(role.command()).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    Binary::spawn(command)
}

impl Drop for RoleProcess {
    /// A test that fails shows what its processes complained of, and how those ended that did.
    #[expect(clippy::print_stderr, reason = "it is for whoever reads of the failure")]
    fn drop(&mut self) {
        if thread::panicking() {
            for line in self.log().lines().filter(|line| COMPLAINTS.iter().any(|of| line.contains(of))) {
                eprintln!("{:?}: {line}", self.role);
            }
            if let Some(status) = self.with(|starts| starts.binary.exit_status()) {
                eprintln!("{:?}: {status}: {}", self.role, self.log().lines().last().unwrap_or_default());
            }
        }
    }
}
