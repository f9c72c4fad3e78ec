//! One process of a role, which a test may restart.

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
use crate::metrics;
use crate::port::free_port;
use crate::wait::eventually;

/// The role of a process.
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
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Ingest => "ingest",
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }

    /// The variable for the address of its listener; `None` if the role has none.
    fn listen_variable(self) -> Option<&'static str> {
        match self {
            Self::Api => Some("TEMPMAIL_HTTP__LISTEN"),
            Self::Ingest => Some("TEMPMAIL_SMTP__LISTEN"),
            Self::Worker | Self::Operator => None,
        }
    }
}

/// The end of a terminated process.
#[derive(Debug)]
pub struct Termination {
    /// Its exit status.
    pub status: ExitStatus,
    /// Time from the signal to the exit.
    pub took: Duration,
}

/// What marks the lines of a log that report a problem.
const PROBLEMS: [&str; 3] = ["WARN", "ERROR", "panicked"];

/// A process with fixed addresses, which may have exited.
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
    /// Logs of earlier starts.
    log: String,
}

impl RoleProcess {
    /// Starts a process on free ports.
    pub(crate) fn start(
        role: Role,
        mut environment: Vec<(String, String)>,
        http_client: reqwest::Client,
    ) -> Self {
        let (listen, admin) = (free_port(), free_port());
        environment.push(("TEMPMAIL_ADMIN__LISTEN".to_owned(), admin.to_string()));
        if let Some(name) = role.listen_variable() {
            environment.push((name.to_owned(), listen.to_string()));
        }
        let starts = Starts { binary: spawn(role, &environment), log: String::new() };
        let (_validated, starts) = (ValidatedServer::new(listen), Mutex::new(starts));
        Self { role, listen, admin, environment, http_client, _validated, starts }
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Address of its listener for clients.
    ///
    /// # Panics
    /// The role has none.
    pub fn listen(&self) -> SocketAddr {
        assert!(self.role.listen_variable().is_some(), "this role has no listener for clients");
        self.listen
    }

    /// Address of its listener for probes and metrics.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Process id of the last start.
    pub fn pid(&self) -> u32 {
        self.with(|starts| starts.binary.pid())
    }

    /// Waits until it is ready and its listener accepts connections.
    pub(crate) async fn wait_until_started(&self) {
        self.wait_until_ready().await;
        if self.role.listen_variable().is_some() {
            eventually("a listener", || async { TcpStream::connect(self.listen).await.ok() }).await;
        }
    }

    /// Waits until `/readyz` reports it as ready.
    ///
    /// # Panics
    /// It exits or hangs instead.
    pub async fn wait_until_ready(&self) {
        eventually("a process is ready", || async {
            let ended = self.with(|starts| starts.binary.exit_status());
            assert!(ended.is_none(), "{:?} exited with {ended:?}:\n{}", self.role, self.log());
            self.is_ready().await.then_some(())
        })
        .await;
    }

    /// Whether `/readyz` reports it as ready.
    pub async fn is_ready(&self) -> bool {
        let probe = self.http_client.get(format!("http://{}/readyz", self.admin)).send().await;
        probe.is_ok_and(|answer| answer.status().is_success())
    }

    /// Whether `/livez` says that it should not be restarted.
    pub async fn is_live(&self) -> bool {
        let probe = self.http_client.get(format!("http://{}/livez", self.admin)).send().await;
        probe.is_ok_and(|answer| answer.status().is_success())
    }

    /// The body of `/readyz`; `None` if it does not answer yet.
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

    /// A metric, summed over its labels; 0 if there is none with this name yet.
    ///
    /// # Panics
    /// It does not answer.
    pub async fn metric(&self, name: &str) -> f64 {
        metrics::sum(&self.metrics().await, name)
    }

    /// The log of all its starts.
    pub fn log(&self) -> String {
        self.with(|starts| format!("{}{}", starts.log, starts.binary.stderr()))
    }

    /// Waits until the log contains this: it is read a moment after it is written.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_for_log(&self, expected: &str) {
        let what = format!("the log of {:?} contains: {expected}", self.role);
        eventually(&what, || async { self.log().contains(expected).then_some(()) }).await;
    }

    /// Resident memory in bytes.
    ///
    /// # Panics
    /// It has exited.
    pub fn resident_bytes(&self) -> u64 {
        self.with(|starts| starts.binary.resident_bytes())
    }

    /// Sets its limit on open files and returns the previous one. Open files stay open.
    ///
    /// # Panics
    /// It has exited, or the limit is above the maximum.
    pub fn set_open_file_limit(&self, limit: u64) -> u64 {
        self.with(|starts| starts.binary.set_open_file_limit(limit))
    }

    /// Processor time since its start, in steps of 10 ms.
    ///
    /// # Panics
    /// It has exited.
    pub fn cpu_time(&self) -> Duration {
        self.with(|starts| starts.binary.cpu_time())
    }

    /// Sends it a signal, such as SIGSTOP or SIGCONT.
    ///
    /// # Panics
    /// It has exited.
    pub fn signal(&self, signal: Signal) {
        self.with(|starts| {
            assert!(starts.binary.exit_status().is_none(), "{:?} has exited", self.role);
            starts.binary.signal(signal);
        });
    }

    /// Sends SIGKILL and waits until it exits.
    ///
    /// # Panics
    /// It has exited already, or keeps running.
    pub async fn kill(&self) {
        self.signal(Signal::SIGKILL);
        self.wait_for_exit().await;
    }

    /// Sends SIGTERM and waits until it exits.
    ///
    /// # Panics
    /// It has exited already, or keeps running.
    pub async fn terminate(&self) -> Termination {
        let started = Instant::now();
        self.signal(Signal::SIGTERM);
        let status = self.wait_for_exit().await;
        Termination { status, took: started.elapsed() }
    }

    /// Starts it again at its addresses, and waits until it is ready. A running process is killed first.
    ///
    /// # Panics
    /// It exits or hangs instead.
    pub async fn restart(&self) {
        self.with(|starts| {
            // Asked and killed at once: it may be about to end, and `kill` panics if it has ended.
            if starts.binary.exit_status().is_none() {
                starts.binary.signal(Signal::SIGKILL);
            }
        });
        self.wait_for_exit().await;
        self.with(|starts| {
            starts.log.push_str(&starts.binary.stderr());
            starts.log.push('\n');
            starts.binary = spawn(self.role, &self.environment);
        });
        self.wait_until_started().await;
    }

    /// Waits until it exits.
    ///
    /// # Panics
    /// It keeps running.
    pub async fn wait_for_exit(&self) -> ExitStatus {
        eventually("a process ends", || async { self.with(|starts| starts.binary.exit_status()) }).await
    }

    fn with<T>(&self, inspect: impl FnOnce(&mut Starts) -> T) -> T {
        inspect(&mut self.starts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn spawn(role: Role, environment: &[(String, String)]) -> Binary {
    let mut command = Command::new(program());
    command.arg(role.command()).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    Binary::spawn(command)
}

impl Drop for RoleProcess {
    /// Prints the problems in the log, and the exit status, if the test fails.
    #[expect(clippy::print_stderr, reason = "it explains a failed test")]
    fn drop(&mut self) {
        if thread::panicking() {
            for line in self.log().lines().filter(|line| PROBLEMS.iter().any(|of| line.contains(of))) {
                eprintln!("{:?}: {line}", self.role);
            }
            if let Some(status) = self.with(|starts| starts.binary.exit_status()) {
                eprintln!("{:?}: {status}: {}", self.role, self.log().lines().last().unwrap_or_default());
            }
        }
    }
}
