//! An SMTP session as a state machine: it is fed what came in, appends replies, and says what
//! has to be done outside of it. How the input is split changes nothing.

mod message;

use std::net::IpAddr;
use std::sync::Arc;

use memchr::memchr;
use tempmail_model::address::{AddressError, RecipientAddress};

use super::command::{self, Command};
use super::data::{DataLimits, MessageData};
use super::reply::{self, RecipientRefusal, Reply};
use super::transaction::Transaction;
use crate::delivery::{ReceivedMail, Verdict};
use crate::memory::MemoryBudget;

/// What all sessions of a server have in common.
#[derive(Debug)]
pub struct Settings {
    /// The server's name.
    pub hostname: String,
    /// STARTTLS is offered.
    pub tls_offered: bool,
    /// Bounds of a message.
    pub data: DataLimits,
    /// Recipients of a transaction.
    pub max_recipients: usize,
    /// Permanent refusals, without a mail stored in between, that end a session.
    pub max_errors: u32,
    /// Message data of all sessions.
    pub memory: MemoryBudget,
}

impl Settings {
    /// What a server says first.
    pub fn greeting(&self) -> String {
        format!("220 {} ESMTP tempmail\r\n", self.hostname)
    }
}

/// What [`Session::feed`] did.
#[derive(Debug)]
pub struct Step {
    /// Octets consumed from the front of the input.
    pub consumed: usize,
    /// What has to happen now.
    pub action: Action,
}

/// What a session needs from outside before it can go on.
#[derive(Debug)]
pub enum Action {
    /// Send the replies, then read more and feed it behind what was not consumed.
    Read,
    /// Decide these, in order, and call [`Session::recipients_checked`].
    CheckRecipients(Vec<RecipientToCheck>),
    /// Deliver it and call [`Session::delivered`].
    Deliver(Box<ReceivedMail>),
    /// Send the replies, do the TLS handshake, and go on with a new session.
    StartTls,
    /// Send the replies and close.
    Close,
}

/// A forward-path that was given at RCPT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipientToCheck {
    /// An address in normal form.
    Address(RecipientAddress),
    /// `<postmaster>` without a domain: that of the default system domain (RFC 5321 4.5.1).
    Postmaster,
}

/// What a session waits for, to know how long it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Commands and ends of data that are done; another number is another wait.
    pub commands: u64,
    /// In message data: octets that have come since DATA or BDAT.
    pub data: Option<u64>,
}

#[derive(Debug)]
enum State {
    Command,
    /// In a line that is too long, to its CRLF.
    TooLongLine {
        behind_cr: bool,
    },
    /// Recipients are being checked outside.
    Checking,
    Data(MessageData),
    Chunk(Chunk),
    /// A mail is being delivered outside.
    Delivering,
    Closed,
}

#[derive(Debug)]
struct Chunk {
    left: u64,
    last: bool,
    /// The message that the chunk belongs to, or why there is none.
    message: Result<MessageData, Reply>,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    settings: Arc<Settings>,
    peer: IpAddr,
    tls: bool,
    state: State,
    /// The client's name for the trace, and whether it came with EHLO.
    hello: Option<(String, bool)>,
    transaction: Option<Transaction>,
    /// RCPTs of one flight, to be checked together.
    to_check: Vec<RecipientToCheck>,
    errors: u32,
    commands: u64,
    data_octets: u64,
}

impl Session {
    /// A session that begins, or begins anew behind a TLS handshake.
    pub fn new(settings: Arc<Settings>, peer: IpAddr, tls: bool) -> Self {
        Self {
            settings,
            peer,
            tls,
            state: State::Command,
            hello: None,
            transaction: None,
            to_check: Vec::new(),
            errors: 0,
            commands: 0,
            data_octets: 0,
        }
    }

    /// Whether no mail transaction is open, so that closing loses nothing.
    pub fn is_idle(&self) -> bool {
        self.transaction.is_none() && matches!(self.state, State::Command | State::TooLongLine { .. })
    }

    /// Octets that MAIL declared for the open transaction; 0 if none.
    pub fn declared_size(&self) -> u64 {
        self.transaction.as_ref().and_then(|transaction| transaction.size).unwrap_or(0)
    }

    /// What it waits for now.
    pub fn waiting(&self) -> Waiting {
        let in_data = matches!(self.state, State::Data(_) | State::Chunk(_));
        Waiting { commands: self.commands, data: in_data.then_some(self.data_octets) }
    }

    /// Goes on with `input`: what was not consumed before, and what came since. Appends replies
    /// to `out`.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let (octets, action) = match &mut self.state {
                State::Closed => (0, Some(Action::Close)),
                State::Checking | State::Delivering => (0, Some(Action::Read)),
                State::Command => self.feed_command(rest, out),
                State::TooLongLine { behind_cr } => {
                    let (octets, ended) = command::skip_line(rest, behind_cr);
                    if ended {
                        self.state = State::Command;
                        self.commands += 1;
                        self.answer(reply::LINE_TOO_LONG, out);
                    }
                    (octets, (!ended).then_some(Action::Read))
                }
                State::Data(message) => {
                    let (octets, ended) = message.receive_dotted(rest);
                    self.data_octets += octets as u64;
                    (octets, if ended { self.end_data(out) } else { Some(Action::Read) })
                }
                State::Chunk(chunk) => {
                    let octets = usize::try_from(chunk.left).unwrap_or(usize::MAX).min(rest.len());
                    if let Ok(message) = &mut chunk.message {
                        message.receive(&rest[..octets]);
                    }
                    chunk.left -= octets as u64;
                    let ended = chunk.left == 0;
                    self.data_octets += octets as u64;
                    (octets, if ended { self.end_chunk(out) } else { Some(Action::Read) })
                }
            };
            consumed += octets;
            if let Some(action) = action {
                return Step { consumed, action };
            }
        }
    }

    /// Answers the RCPTs of [`Action::CheckRecipients`], in their order.
    pub fn recipients_checked(
        &mut self,
        answers: impl IntoIterator<Item = Result<RecipientAddress, RecipientRefusal>>,
        out: &mut Vec<u8>,
    ) {
        self.state = State::Command;
        for answer in answers {
            match (answer, &mut self.transaction) {
                (Ok(recipient), Some(transaction)) => {
                    transaction.add(recipient);
                    reply::RECIPIENT_OK.write(out);
                }
                (Ok(_), None) => self.answer(reply::MAIL_FIRST, out),
                (Err(refusal), transaction) => {
                    let refusal = Reply::from(refusal);
                    if let Some(transaction) = transaction {
                        transaction.deferred |= !refusal.is_permanent();
                    }
                    self.answer(refusal, out);
                }
            }
            if matches!(self.state, State::Closed) {
                return;
            }
        }
    }

    /// Answers the data of [`Action::Deliver`].
    pub fn delivered(&mut self, verdict: Verdict, out: &mut Vec<u8>) {
        self.state = State::Command;
        if verdict == Verdict::Stored {
            self.errors = 0;
        }
        self.answer(verdict.into(), out);
    }

    /// One command line, or the request for more. `None` goes on.
    fn feed_command(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Option<Action>) {
        let end = memchr(b'\n', &input[..input.len().min(command::LINE_MAX)]);
        let line = end.map(|end| &input[..end]);
        let gathering = !self.to_check.is_empty();
        if gathering && !line.is_some_and(|line| self.may_gather(line)) {
            self.state = State::Checking;
            return (0, Some(Action::CheckRecipients(std::mem::take(&mut self.to_check))));
        }
        let Some(line) = line else {
            if input.len() < command::LINE_MAX {
                return (0, Some(Action::Read));
            }
            self.state = State::TooLongLine { behind_cr: false };
            return (0, None);
        };
        let consumed = line.len() + 1;
        self.commands += 1;
        let action = match line.strip_suffix(b"\r") {
            Some(line) => {
                let alone = consumed == input.len();
                self.command(line, alone, out)
            }
            None => {
                self.answer(reply::BARE_LF_LINE, out);
                None
            }
        };
        (consumed, action)
    }

    /// Whether a line is a RCPT that can be checked together with those before it; one that is
    /// refused by itself must be answered behind them.
    fn may_gather(&self, line: &[u8]) -> bool {
        line.strip_suffix(b"\r").is_some_and(|line| {
            command::is_rcpt(line)
                && matches!(command::parse(line), Ok(Command::Rcpt(path)) if self.recipient(path).is_ok())
        })
    }

    fn command(&mut self, line: &[u8], alone: bool, out: &mut Vec<u8>) -> Option<Action> {
        let command = match command::parse(line) {
            Ok(command) => command,
            Err(refusal) => {
                self.answer(refusal, out);
                if refusal == reply::BDAT_SYNTAX {
                    self.state = State::Closed;
                }
                return None;
            }
        };
        let answer = match command {
            Command::Ehlo(name) => {
                self.hello(name, true);
                self.write_extensions(out);
                return None;
            }
            Command::Helo(name) => {
                self.hello(name, false);
                out.extend_from_slice(format!("250 {}\r\n", self.settings.hostname).as_bytes());
                return None;
            }
            Command::Mail(mail) => self.mail(&mail),
            Command::Rcpt(path) => match self.recipient(path) {
                Ok(recipient) => {
                    self.to_check.push(recipient);
                    return None;
                }
                Err(refusal) => refusal,
            },
            Command::Data => self.data(),
            Command::Bdat { octets, last } => {
                let message = self.chunk(octets);
                self.state = State::Chunk(Chunk { left: octets, last, message });
                return None;
            }
            Command::Rset => {
                self.transaction = None;
                reply::OK
            }
            Command::Noop => reply::OK,
            Command::Vrfy => reply::VRFY,
            Command::Help => reply::HELP,
            Command::Quit => {
                self.state = State::Closed;
                reply::BYE
            }
            Command::StartTls => return self.start_tls(alone, out),
        };
        self.answer(answer, out);
        None
    }

    fn hello(&mut self, name: &str, extended: bool) {
        self.hello = Some((command::hello_for_trace(name), extended));
        self.transaction = None;
    }

    fn write_extensions(&self, out: &mut Vec<u8>) {
        let Settings { hostname, data, max_recipients, tls_offered, .. } = &*self.settings;
        let starttls = if *tls_offered && !self.tls { "250-STARTTLS\r\n" } else { "" };
        let size = data.message_octets;
        out.extend_from_slice(
            format!(
                "250-{hostname}\r\n250-PIPELINING\r\n250-SIZE {size}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
                 250-CHUNKING\r\n250-ENHANCEDSTATUSCODES\r\n{starttls}250 LIMITS RCPTMAX={max_recipients}\r\n"
            )
            .as_bytes(),
        );
    }

    fn mail(&mut self, mail: &command::Mail<'_>) -> Reply {
        if self.hello.is_none() {
            return reply::HELLO_FIRST;
        }
        if self.transaction.is_some() {
            return reply::NESTED_MAIL;
        }
        if mail.size.is_some_and(|size| size > self.settings.data.message_octets) {
            return reply::TOO_BIG;
        }
        self.transaction = Some(Transaction::new(mail.sender.to_owned(), mail.utf8, mail.size));
        reply::SENDER_OK
    }

    /// What of a RCPT can be decided here.
    fn recipient(&self, path: &str) -> Result<RecipientToCheck, Reply> {
        let transaction = self.transaction.as_ref().ok_or(reply::MAIL_FIRST)?;
        if transaction.chunks.is_some() {
            return Err(reply::CHUNKS_BEGUN);
        }
        if transaction.recipients.len() + self.to_check.len() >= self.settings.max_recipients {
            return Err(reply::TOO_MANY_RECIPIENTS);
        }
        if !path.is_ascii() && !transaction.utf8 {
            return Err(reply::NON_ASCII);
        }
        if path.eq_ignore_ascii_case("postmaster") {
            return Ok(RecipientToCheck::Postmaster);
        }
        match RecipientAddress::parse(path) {
            Ok(address) => Ok(RecipientToCheck::Address(address)),
            Err(AddressError::AddressLiteral) => Err(reply::NOT_OURS),
            Err(AddressError::Malformed | AddressError::NeedsQuotes) => Err(reply::BAD_RECIPIENT),
        }
    }

    fn start_tls(&mut self, alone: bool, out: &mut Vec<u8>) -> Option<Action> {
        let refusal = if self.tls {
            reply::TLS_ACTIVE
        } else if !self.settings.tls_offered {
            reply::NOT_IMPLEMENTED
        } else if alone {
            self.state = State::Closed;
            reply::START_TLS.write(out);
            return Some(Action::StartTls);
        } else {
            self.state = State::Closed;
            reply::BEHIND_STARTTLS
        };
        self.answer(refusal, out);
        None
    }

    /// Replies, and ends the session at the last error it may make.
    fn answer(&mut self, reply: Reply, out: &mut Vec<u8>) {
        reply.write(out);
        if !reply.is_permanent() {
            return;
        }
        self.errors += 1;
        if self.errors >= self.settings.max_errors && !matches!(self.state, State::Closed) {
            reply::TOO_MANY_ERRORS.write(out);
            self.state = State::Closed;
        }
    }
}
