//! An SMTP sender that keeps its connection, reports any reply as an outcome, and never waits longer
//! than [`TIMEOUT`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest duration of a step of a transaction: a reply, or sending the data.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What became of a request or mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was answered so.
    Code(u16),
    /// No reply within [`TIMEOUT`].
    TimedOut,
    /// The connection broke, or could not be made.
    ConnectionLost,
}

impl Outcome {
    /// Whether it was accepted: 2xx.
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Code(200..=299))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::TimedOut => write!(f, "no reply in {} s", TIMEOUT.as_secs()),
            Self::ConnectionLost => f.write_str("connection lost"),
        }
    }
}

/// The number of each outcome, and the longest wait.
#[derive(Debug, Clone, Default)]
pub struct OutcomeCounts {
    counts: BTreeMap<Outcome, usize>,
    longest: Duration,
}

impl OutcomeCounts {
    /// Adds one; with how long it took.
    pub fn add(&mut self, delivery: Delivery) {
        *self.counts.entry(delivery.outcome).or_default() += 1;
        self.longest = self.longest.max(delivery.wait);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: Self) {
        for (outcome, count) in other.counts {
            *self.counts.entry(outcome).or_default() += count;
        }
        self.longest = self.longest.max(other.longest);
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Those that were answered 2xx; of mail that is `250` alone.
    pub fn accepted(&self) -> usize {
        self.counts.iter().filter(|(outcome, _)| outcome.is_accepted()).map(|(_, count)| count).sum()
    }
}

impl fmt::Display for OutcomeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.counts.iter().map(|(outcome, count)| format!("{count} x {outcome}")).collect();
        if counts.is_empty() {
            return f.write_str("none");
        }
        write!(f, "{}, longest {:.0} ms", counts.join(", "), self.longest.as_secs_f64() * 1e3)
    }
}

/// One mail, or one request.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// What became of it.
    pub outcome: Outcome,
    /// From the end of data to the reply; [`TIMEOUT`] if a step had none in time, zero if
    /// it came to nothing before the data.
    pub wait: Duration,
}

impl Delivery {
    /// Whether its time counts: it was accepted, or kept waiting.
    pub fn is_measured(self) -> bool {
        self.outcome.is_accepted() || self.outcome == Outcome::TimedOut
    }
}

/// Sends mails one after the other over a connection that is kept while it can be.
#[derive(Debug)]
pub struct SmtpSender {
    smtp: SocketAddr,
    session: Option<BoundedSession>,
}

impl SmtpSender {
    /// Connects with the first mail.
    pub fn new(smtp: SocketAddr) -> Self {
        Self { smtp, session: None }
    }

    /// Whether the last mail left the connection usable.
    pub fn is_open(&self) -> bool {
        self.session.is_some()
    }

    /// Sends `mail`, whose end of data is in it, to all recipients; one that is refused ends it.
    pub async fn send(&mut self, recipients: &[String], mail: &[u8]) -> Delivery {
        match self.transaction(recipients, mail).await {
            Ok(delivery) => delivery,
            Err(outcome) => {
                let wait = if outcome == Outcome::TimedOut { TIMEOUT } else { Duration::ZERO };
                Delivery { outcome, wait }
            }
        }
    }

    /// A failure before the reply to the data drops the connection, and the next mail opens
    /// another.
    async fn transaction(&mut self, recipients: &[String], mail: &[u8]) -> Result<Delivery, Outcome> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => BoundedSession::open(self.smtp).await?,
        };
        let delivery = session.transaction(recipients, mail).await?;
        // 421 announces that the server closes.
        self.session = Some(session).filter(|_| delivery.outcome != Outcome::Code(421));
        Ok(delivery)
    }
}

/// One connection.
#[derive(Debug)]
struct BoundedSession {
    stream: BufReader<TcpStream>,
    line: String,
}

impl BoundedSession {
    async fn open(smtp: SocketAddr) -> Result<Self, Outcome> {
        let stream = bounded(TcpStream::connect(smtp)).await?;
        stream.set_nodelay(true).map_err(|_| Outcome::ConnectionLost)?;
        let mut session = Self { stream: BufReader::new(stream), line: String::new() };
        session.expect(220).await?;
        session.write(b"EHLO bench.example\r\n").await?;
        session.expect(250).await?;
        Ok(session)
    }

    async fn transaction(&mut self, recipients: &[String], mail: &[u8]) -> Result<Delivery, Outcome> {
        let mut group = String::from("MAIL FROM:<sender@bench.example>\r\n");
        for recipient in recipients {
            group.push_str(&format!("RCPT TO:<{recipient}>\r\n"));
        }
        self.write(group.as_bytes()).await?;
        for _ in 0..=recipients.len() {
            self.expect(250).await?;
        }
        self.write(b"DATA\r\n").await?;
        self.expect(354).await?;
        self.write(mail).await?;
        let sent = Instant::now();
        let code = self.reply().await?;
        Ok(Delivery { outcome: Outcome::Code(code), wait: sent.elapsed() })
    }

    async fn write(&mut self, octets: &[u8]) -> Result<(), Outcome> {
        bounded(self.stream.write_all(octets)).await
    }

    async fn expect(&mut self, code: u16) -> Result<(), Outcome> {
        let got = self.reply().await?;
        if got == code { Ok(()) } else { Err(Outcome::Code(got)) }
    }

    /// Code of one reply, all its lines read.
    async fn reply(&mut self) -> Result<u16, Outcome> {
        loop {
            self.line.clear();
            bounded(self.stream.read_line(&mut self.line)).await?;
            let code =
                self.line.get(..3).and_then(|digits| digits.parse().ok()).ok_or(Outcome::ConnectionLost)?;
            if self.line.as_bytes().get(3) != Some(&b'-') {
                return Ok(code);
            }
        }
    }
}

async fn bounded<T>(step: impl Future<Output = io::Result<T>>) -> Result<T, Outcome> {
    match timeout(TIMEOUT, step).await {
        Ok(done) => done.map_err(|_| Outcome::ConnectionLost),
        Err(_) => Err(Outcome::TimedOut),
    }
}
