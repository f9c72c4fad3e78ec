//! Our own SMTP load generator: a fixed number of connections, each sending its next mail as
//! soon as the last one was accepted. It runs on one thread, to leave the machine to the server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::mail::Mails;
use crate::measure::Latencies;

/// A load run. No reply but the expected one is taken for an answer: the first ends the run.
#[derive(Debug, Clone, Args)]
pub struct SmtpLoad {
    /// Where the server listens; a loopback address
    #[arg(long)]
    pub addr: SocketAddr,
    /// Connections at a time
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Mails in all
    #[arg(long, default_value_t = 20_000)]
    pub mails: usize,
    /// Octets a mail
    #[arg(long, default_value_t = 3_072)]
    pub size: usize,
    /// Send commands in groups (RFC 2920)
    #[arg(long)]
    pub pipelined: bool,
    /// `many` (an address a mail), `one`, or the number of addresses
    #[arg(long, default_value = "many")]
    pub recipients: Recipients,
    /// A new connection a mail, or kept ones
    #[arg(long, value_enum, default_value_t = Connections::Kept)]
    pub kind: Connections,
    /// Domain of the recipients
    #[arg(long, default_value = "inbox.localhost")]
    pub domain: String,
    /// What the recipients' local parts end with
    #[arg(long, default_value = "load")]
    pub label: String,
    /// Seconds after which the run is given up
    #[arg(long, default_value_t = 600)]
    pub limit_seconds: u64,
}

/// Whether a connection carries one mail or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Connections {
    /// Each mail over a connection of its own.
    New,
    /// Each connection carries mail after mail.
    Kept,
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::Kept => "kept",
        })
    }
}

/// How many addresses the mails go to, in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipients {
    /// As many as there are mails.
    Many,
    /// So many.
    Some(usize),
}

impl std::str::FromStr for Recipients {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "many" => Ok(Self::Many),
            "one" => Ok(Self::Some(1)),
            number => match number.parse() {
                Ok(count) if count > 0 => Ok(Self::Some(count)),
                _ => Err("must be `many`, `one` or a number above 0".into()),
            },
        }
    }
}

impl SmtpLoad {
    /// The recipient of mail `number`, counted from 1 as `smtp-source -N` counts.
    pub fn recipient(&self, number: usize) -> String {
        let address = match self.recipients {
            Recipients::Many => number,
            Recipients::Some(count) => (number - 1) % count + 1,
        };
        format!("{address}{}@{}", self.label, self.domain)
    }

    /// Sends all mails.
    ///
    /// # Errors
    /// An unexpected reply, a lost connection, or the time limit: then nothing was measured.
    pub async fn run(&self) -> anyhow::Result<LoadReport> {
        ensure!(self.addr.ip().is_loopback(), "{} is not on loopback", self.addr);
        let load = self.clone();
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(load.run_here())
        })
        .await?
    }

    async fn run_here(self) -> anyhow::Result<LoadReport> {
        let limit = Duration::from_secs(self.limit_seconds);
        let mails = Arc::new(Mails::of_size(self.size));
        let load = Arc::new(self);
        let next = Arc::new(AtomicUsize::new(1));
        let started = Instant::now();
        let mut sessions = JoinSet::new();
        for _ in 0..load.connections {
            let (load, mails, next) = (Arc::clone(&load), Arc::clone(&mails), Arc::clone(&next));
            sessions.spawn(async move { send_in_turn(&load, &mails, &next).await });
        }
        let mut latencies = Vec::with_capacity(load.mails);
        let all = async {
            while let Some(session) = sessions.join_next().await {
                latencies.extend(session??);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(limit, all).await.context("the time limit passed")??;
        let elapsed = started.elapsed();
        ensure!(latencies.len() == load.mails, "{} of {} mails were sent", latencies.len(), load.mails);
        Ok(LoadReport { mails: load.mails, elapsed, latencies: Latencies::new(latencies) })
    }
}

/// Results of a run.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// Mails that were accepted.
    pub mails: usize,
    /// From the first connection to the last reply.
    pub elapsed: Duration,
    /// From the last octet of a mail to the `250` that accepts it.
    pub latencies: Latencies,
}

impl LoadReport {
    /// Several runs, one after the other, as one.
    pub fn sum(reports: impl IntoIterator<Item = Self>) -> Self {
        let (mut mails, mut elapsed, mut latencies) = (0, Duration::ZERO, Vec::new());
        for report in reports {
            mails += report.mails;
            elapsed += report.elapsed;
            latencies.extend(report.latencies.into_inner());
        }
        Self { mails, elapsed, latencies: Latencies::new(latencies) }
    }

    /// Mails a second.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 mails")]
    pub fn rate(&self) -> f64 {
        self.mails as f64 / self.elapsed.as_secs_f64()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} msg/s; 250 after end of data: {}", self.rate(), self.latencies)
    }
}

/// One connection's worth of the run: takes the next number until there is none.
async fn send_in_turn(load: &SmtpLoad, mails: &Mails, next: &AtomicUsize) -> anyhow::Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(load.mails / load.connections + 1);
    let mut session: Option<SmtpSession> = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number > load.mails {
            break;
        }
        let mut current = match session.take() {
            Some(session) => session,
            None => SmtpSession::open(load.addr).await?,
        };
        let recipient = load.recipient(number);
        let latency = if load.pipelined {
            current.send_in_groups(mails, number, &recipient).await?
        } else {
            current.send_step_by_step(mails, number, &recipient).await?
        };
        latencies.push(latency);
        match load.kind {
            Connections::New => current.close().await?,
            Connections::Kept => session = Some(current),
        }
    }
    if let Some(session) = session {
        session.close().await?;
    }
    Ok(latencies)
}

/// One SMTP session.
pub struct SmtpSession {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl SmtpSession {
    /// Connects and says hello.
    ///
    /// # Errors
    /// Nothing listens there, or the answer is another one.
    pub async fn open(addr: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let mut session = Self { stream, input: Vec::with_capacity(1024), output: Vec::with_capacity(8192) };
        session.expect(220).await?;
        session.command("EHLO bench.example\r\n", 250).await?;
        Ok(session)
    }

    async fn send_step_by_step(
        &mut self,
        mails: &Mails,
        number: usize,
        recipient: &str,
    ) -> anyhow::Result<Duration> {
        self.command(&format!("MAIL FROM:<{}>\r\n", mails.sender()), 250).await?;
        self.command(&format!("RCPT TO:<{recipient}>\r\n"), 250).await?;
        self.command("DATA\r\n", 354).await?;
        self.data(mails, number, recipient).await
    }

    /// Sends mail `number` with its commands in groups (RFC 2920); returns how long the `250`
    /// after it took.
    ///
    /// # Errors
    /// Another reply, or the connection breaks.
    pub async fn send_in_groups(
        &mut self,
        mails: &Mails,
        number: usize,
        recipient: &str,
    ) -> anyhow::Result<Duration> {
        let group = format!("MAIL FROM:<{}>\r\nRCPT TO:<{recipient}>\r\nDATA\r\n", mails.sender());
        self.stream.write_all(group.as_bytes()).await?;
        self.expect(250).await?;
        self.expect(250).await?;
        self.expect(354).await?;
        self.data(mails, number, recipient).await
    }

    /// The mail itself; returns how long its `250` took.
    async fn data(&mut self, mails: &Mails, number: usize, recipient: &str) -> anyhow::Result<Duration> {
        self.output.clear();
        mails.write(&mut self.output, number, recipient);
        self.stream.write_all(&self.output).await?;
        let sent = Instant::now();
        self.expect(250).await?;
        Ok(sent.elapsed())
    }

    /// Says goodbye.
    ///
    /// # Errors
    /// As [`Self::send_in_groups`].
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.command("QUIT\r\n", 221).await
    }

    async fn command(&mut self, line: &str, code: u16) -> anyhow::Result<()> {
        self.stream.write_all(line.as_bytes()).await?;
        self.expect(code).await
    }

    /// Reads one reply, all its lines.
    async fn expect(&mut self, code: u16) -> anyhow::Result<()> {
        loop {
            if let Some((end, last)) = last_line(&self.input) {
                let got = self.input.get(last..last + 3).and_then(|text| str::from_utf8(text).ok());
                if got.and_then(|text| text.parse().ok()) != Some(code) {
                    bail!("expected {code}, got: {}", String::from_utf8_lossy(&self.input[..end]).trim_end());
                }
                self.input.drain(..end);
                return Ok(());
            }
            ensure!(self.stream.read_buf(&mut self.input).await? > 0, "the server closed the connection");
        }
    }
}

/// End of the first whole reply and where its last line starts.
fn last_line(input: &[u8]) -> Option<(usize, usize)> {
    let mut start = 0;
    while let Some(length) = input[start..].iter().position(|&byte| byte == b'\n') {
        let end = start + length + 1;
        if input.get(start + 3) != Some(&b'-') {
            return Some((end, start));
        }
        start = end;
    }
    None
}
