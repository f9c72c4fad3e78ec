//! A sender over a kept SMTP connection that takes any answer for one, and no wait of which lasts
//! longer than [`PATIENCE`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a step of a transaction may take: an answer, or sending the data.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a request or mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// It was answered so.
    Code(u16),
    /// It was not answered in [`PATIENCE`].
    Late,
    /// The connection broke, or could not be made.
    Lost,
}

impl Answer {
    /// Whether it was accepted: 2xx.
    pub fn accepts(self) -> bool {
        matches!(self, Self::Code(200..=299))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Late => write!(f, "no answer in {} s", PATIENCE.as_secs()),
            Self::Lost => f.write_str("connection lost"),
        }
    }
}

/// How many were answered how, and the longest time that an answer took.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    counts: BTreeMap<Answer, usize>,
    longest: Duration,
}

impl Answers {
    /// Adds one; with how long it took.
    pub fn add(&mut self, delivery: Delivery) {
        *self.counts.entry(delivery.answer).or_default() += 1;
        self.longest = self.longest.max(delivery.wait);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: Self) {
        for (answer, count) in other.counts {
            *self.counts.entry(answer).or_default() += count;
        }
        self.longest = self.longest.max(other.longest);
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// Those that were answered 2xx; of mail that is `250` alone.
    pub fn accepted(&self) -> usize {
        self.counts.iter().filter(|(answer, _)| answer.accepts()).map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.counts.iter().map(|(answer, count)| format!("{count} x {answer}")).collect();
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
    pub answer: Answer,
    /// From the end of data to the answer; [`PATIENCE`] where a step had none in time, zero where
    /// it came to nothing before the data.
    pub wait: Duration,
}

impl Delivery {
    /// Whether its time counts: it was accepted, or kept waiting.
    pub fn counts(self) -> bool {
        self.answer.accepts() || self.answer == Answer::Late
    }
}

/// Sends mails one after the other over a connection that is kept while it can be.
#[derive(Debug)]
pub struct Sender {
    smtp: SocketAddr,
    session: Option<Session>,
}

impl Sender {
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
            Err(answer) => {
                let wait = if answer == Answer::Late { PATIENCE } else { Duration::ZERO };
                Delivery { answer, wait }
            }
        }
    }

    /// What came to nothing before the data's answer loses the connection, and the next mail makes
    /// another.
    async fn transaction(&mut self, recipients: &[String], mail: &[u8]) -> Result<Delivery, Answer> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => Session::open(self.smtp).await?,
        };
        let delivery = session.transaction(recipients, mail).await?;
        // 421 announces that the server closes.
        self.session = Some(session).filter(|_| delivery.answer != Answer::Code(421));
        Ok(delivery)
    }
}

/// One connection.
#[derive(Debug)]
struct Session {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Session {
    async fn open(smtp: SocketAddr) -> Result<Self, Answer> {
        let stream = bounded(TcpStream::connect(smtp)).await?;
        stream.set_nodelay(true).map_err(|_| Answer::Lost)?;
        let mut session = Self { stream: BufReader::new(stream), line: String::new() };
        session.expect(220).await?;
        session.write(b"EHLO bench.example\r\n").await?;
        session.expect(250).await?;
        Ok(session)
    }

    async fn transaction(&mut self, recipients: &[String], mail: &[u8]) -> Result<Delivery, Answer> {
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
        Ok(Delivery { answer: Answer::Code(code), wait: sent.elapsed() })
    }

    async fn write(&mut self, octets: &[u8]) -> Result<(), Answer> {
        bounded(self.stream.write_all(octets)).await
    }

    async fn expect(&mut self, code: u16) -> Result<(), Answer> {
        let got = self.reply().await?;
        if got == code { Ok(()) } else { Err(Answer::Code(got)) }
    }

    /// Code of one reply, all its lines read.
    async fn reply(&mut self) -> Result<u16, Answer> {
        loop {
            self.line.clear();
            bounded(self.stream.read_line(&mut self.line)).await?;
            let code = self.line.get(..3).and_then(|digits| digits.parse().ok()).ok_or(Answer::Lost)?;
            if self.line.as_bytes().get(3) != Some(&b'-') {
                return Ok(code);
            }
        }
    }
}

async fn bounded<T>(step: impl Future<Output = io::Result<T>>) -> Result<T, Answer> {
    match timeout(PATIENCE, step).await {
        Ok(done) => done.map_err(|_| Answer::Lost),
        Err(_) => Err(Answer::Late),
    }
}
