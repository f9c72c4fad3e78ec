//! The servers that are compared. Only the measured one runs, on a free loopback port.

pub mod cpu;
mod postfix;
mod tempmail;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

pub use tempmail::{MailReader, Tempmail};

/// How long a server may take to greet: `tempmail up` makes its Postgres the first time.
const START: Duration = Duration::from_secs(60);
/// How long it may take to stop: `tempmail up` drains for up to 25 s.
const STOP: Duration = Duration::from_secs(35);

/// A server to measure.
#[derive(Debug, Clone)]
pub enum Server {
    /// Postfix's test server, which discards: the most that is possible.
    SmtpSink,
    /// `tempmail up` by its path, with a data directory that lasts for the whole run.
    Tempmail(Tempmail),
    /// Postfix: queues on disk before its `250`, then discards.
    Postfix,
    /// Inbucket by its path: keeps mail in memory.
    Inbucket(PathBuf),
    /// Mailpit by its path: keeps mail in SQLite.
    Mailpit(PathBuf),
    /// MailHog by its path: keeps mail in memory.
    MailHog(PathBuf),
}

/// A server that accepts mail; stopped when dropped, best by [`RunningServer::stop`].
#[derive(Debug)]
pub struct RunningServer {
    child: Child,
    /// Where it speaks SMTP.
    pub smtp: SocketAddr,
    /// How to read what it stored, where we know.
    pub reader: Option<MailReader>,
}

impl Server {
    /// What the table calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SmtpSink => "smtp-sink (discards)",
            Self::Tempmail(_) => "tempmail up (durable)",
            Self::Postfix => "Postfix (durable queue)",
            Self::Inbucket(_) => "Inbucket (memory)",
            Self::Mailpit(_) => "Mailpit (SQLite)",
            Self::MailHog(_) => "MailHog (memory)",
        }
    }

    /// Starts it with its files under `directory` and waits until it greets.
    ///
    /// # Errors
    /// It can't be started, or did not greet in time.
    pub async fn start(&self, directory: &Path) -> anyhow::Result<RunningServer> {
        let smtp = free_port()?;
        let (mut command, reader) = match self {
            Self::SmtpSink => (smtp_sink(smtp), None),
            Self::Tempmail(tempmail) => {
                let (command, reader) = tempmail.command(smtp, directory)?;
                (command, Some(reader))
            }
            Self::Postfix => (postfix::command(smtp, directory)?, None),
            Self::Inbucket(program) => (inbucket(program, smtp)?, None),
            Self::Mailpit(program) => (mailpit(program, smtp, directory)?, None),
            Self::MailHog(program) => (mailhog(program, smtp)?, None),
        };
        command.current_dir(directory).stdin(Stdio::null());
        let child = command.spawn().with_context(|| format!("{} can't be started", self.name()))?;
        let mut running = RunningServer { child, smtp, reader };
        running.greets().await.with_context(|| format!("{} did not get ready", self.name()))?;
        if let Some(reader) = &mut running.reader {
            reader.wait_ready(START).await?;
        }
        Ok(running)
    }
}

impl RunningServer {
    async fn greets(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            if let Ok(stream) = TcpStream::connect(self.smtp).await {
                let mut line = String::new();
                let mut stream = BufReader::new(stream);
                let read = stream.read_line(&mut line);
                tokio::time::timeout(START, read).await.context("it sends no greeting")??;
                ensure!(line.starts_with("220"), "it greets with {line:?}");
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            ensure!(started.elapsed() < START, "it does not listen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Processor time that it and everything it started used so far.
    pub fn cpu(&self) -> Duration {
        self.child.id().map(cpu::of_tree).unwrap_or_default()
    }

    /// Asks it to stop and waits until it has; kills it where it does not.
    ///
    /// # Errors
    /// The operating system refuses.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.terminate();
        if tokio::time::timeout(STOP, self.child.wait()).await.is_err() {
            self.child.kill().await?;
        }
        Ok(())
    }

    fn terminate(&self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id {
            // It may have ended by itself: then there is nothing to do.
            kill(Pid::from_raw(id), Signal::SIGTERM).ok();
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.terminate();
    }
}

/// A loopback port that is free just now.
///
/// # Errors
/// There is none.
pub fn free_port() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Without output, and out of reach of the terminal's interrupt, which is for us: we stop it.
pub fn command_without_output(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command
}

fn smtp_sink(smtp: SocketAddr) -> Command {
    let mut command = command_without_output("/usr/sbin/smtp-sink");
    if nix::unistd::geteuid().is_root() {
        command.args(["-u", "nobody"]);
    }
    command.arg(smtp.to_string()).arg("1000");
    command
}

fn inbucket(program: &Path, smtp: SocketAddr) -> anyhow::Result<Command> {
    let mut command = command_without_output(program);
    command
        .env("INBUCKET_LOGLEVEL", "error")
        .env("INBUCKET_STORAGE_TYPE", "memory")
        .env("INBUCKET_SMTP_ADDR", smtp.to_string())
        .env("INBUCKET_POP3_ADDR", free_port()?.to_string())
        .env("INBUCKET_WEB_ADDR", free_port()?.to_string());
    Ok(command)
}

fn mailpit(program: &Path, smtp: SocketAddr, directory: &Path) -> anyhow::Result<Command> {
    let mut command = command_without_output(program);
    command
        .args(["--smtp", &smtp.to_string(), "--listen", &free_port()?.to_string()])
        .args(["--max", "0", "--quiet", "--disable-version-check", "--database"])
        .arg(directory.join(format!("mailpit-{}.db", smtp.port())));
    Ok(command)
}

fn mailhog(program: &Path, smtp: SocketAddr) -> anyhow::Result<Command> {
    let web = free_port()?.to_string();
    let mut command = command_without_output(program);
    command.args(["-smtp-bind-addr", &smtp.to_string(), "-api-bind-addr", &web, "-ui-bind-addr", &web]);
    Ok(command)
}
