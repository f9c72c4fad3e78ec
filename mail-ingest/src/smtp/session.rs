//! An SMTP session as a state machine: it consumes input, appends replies, and requests what has to
//! be done outside. How the input is split makes no difference.

mod command;
mod message;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use memchr::memchr;
use tempmail_model::address::AddressSyntax;

use super::auth::Awaited;
use super::command::{self as command_line, Command};
use super::data::{DataLimits, MessageData};
use super::reply::{self, Reply};
use super::{
    AcceptedRecipient, DeliveryOutcome, Peer, PendingRecipient, ReceivedMail, RecipientRejection, Transaction,
};
use crate::memory::{MemoryBudget, TenantKey};

/// Octets of replies that have to be sent before more commands are handled.
const REPLIES_MAX: usize = 4 << 10;

/// Settings that all sessions of a server share.
#[derive(Debug)]
pub(crate) struct SessionSettings {
    /// The server's host name.
    pub(crate) hostname: String,
    /// Whether STARTTLS is offered.
    pub(crate) tls_offered: bool,
    /// Whether all mail is caught, as the client writes it: each path that can be parsed is a recipient, parameters
    /// of DSN (RFC 3461) are known, and AUTH is offered, which takes any password.
    pub(crate) catches_all: bool,
    /// Bounds of a message.
    pub(crate) data: DataLimits,
    /// Maximum recipients of a transaction.
    pub(crate) max_recipients: usize,
    /// Permanent rejections after which a session is closed; a stored mail resets their count.
    pub(crate) max_errors: u32,
    /// Memory for the message data of all sessions.
    pub(crate) memory: MemoryBudget,
}

impl SessionSettings {
    /// Which addresses can be recipients.
    pub(super) fn addresses(&self) -> AddressSyntax {
        if self.catches_all { AddressSyntax::Caught } else { AddressSyntax::Hosted }
    }

    /// The greeting, with its CRLF.
    pub(crate) fn greeting(&self) -> String {
        format!("220 {} ESMTP tempmail\r\n", self.hostname)
    }
}

/// The result of [`Session::feed`].
#[derive(Debug)]
pub(crate) struct Step {
    /// Octets consumed from the front of the input.
    pub(crate) consumed: usize,
    /// What the connection has to do next.
    pub(crate) action: Action,
}

/// What the connection has to do before the session can continue.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send the replies, then read more and feed it behind what was not consumed.
    Read,
    /// Send the replies, then feed again what was not consumed.
    Flush,
    /// Check the recipients and call
    /// [`Session::recipients_checked`] with the results in
    /// their order.
    CheckRecipients(Vec<PendingRecipient>),
    /// Deliver the mail and call [`Session::delivered`].
    Deliver(Box<ReceivedMail>),
    /// Send the replies, do the TLS handshake, and continue with a new session.
    StartTls,
    /// Send the replies and close.
    Close,
}

/// The input that a session waits for, from which its deadline follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AwaitedInput {
    /// Commands and messages completed so far; a new count starts a new wait.
    pub(crate) completed: u64,
    /// Within message data: octets received since DATA or BDAT.
    pub(crate) data: Option<u64>,
}

#[derive(Debug)]
enum SessionState {
    /// Waiting for a command line.
    Command,
    /// Skipping a line that is too long, up to its CRLF.
    SkippingLine {
        previous_was_cr: bool,
    },
    /// Waiting for the client's next line of an AUTH exchange.
    Authenticating(Awaited),
    /// Waiting for [`Session::recipients_checked`].
    CheckingRecipients,
    Data(MessageData),
    Chunk(Chunk),
    /// Waiting for [`Session::delivered`].
    Delivering,
    Closed,
}

/// A BDAT chunk that is being received.
#[derive(Debug)]
struct Chunk {
    remaining: u64,
    last: bool,
    /// The message that the chunk belongs to, or the reply that rejects the chunk.
    message: Result<MessageData, Reply>,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    settings: Arc<SessionSettings>,
    peer: Peer,
    tls: bool,
    state: SessionState,
    /// Whether AUTH has succeeded.
    authenticated: bool,
    /// The client's name for the trace field, and whether it came with EHLO.
    hello: Option<(String, bool)>,
    transaction: Option<Transaction>,
    /// Transactions so far.
    transactions: u64,
    /// Recipients of pipelined RCPTs, which are checked together.
    pending_recipients: Vec<PendingRecipient>,
    /// Permanent rejections since the last stored mail.
    errors: u32,
    /// See [`AwaitedInput::completed`].
    completed: u64,
    data_octets: u64,
    /// Replies that refused mail without a delivery, until they are taken.
    refusals: Vec<Reply>,
}

impl Session {
    /// A session at its start, or at its restart after a TLS handshake.
    pub(crate) fn new(settings: Arc<SessionSettings>, peer: Peer, tls: bool) -> Self {
        Self {
            settings,
            peer,
            tls,
            state: SessionState::Command,
            authenticated: false,
            hello: None,
            transaction: None,
            transactions: 0,
            pending_recipients: Vec::new(),
            errors: 0,
            completed: 0,
            data_octets: 0,
            refusals: Vec::new(),
        }
    }

    /// Whether no mail transaction is open, so that the session can be closed without loss.
    pub(crate) fn is_idle(&self) -> bool {
        self.transaction.is_none()
            && matches!(
                self.state,
                SessionState::Command | SessionState::SkippingLine { .. } | SessionState::Authenticating(_)
            )
    }

    /// The number of the open mail transaction, from 1; `None` if there is none.
    pub(crate) fn open_transaction(&self) -> Option<u64> {
        (!self.is_idle()).then_some(self.transactions)
    }

    /// SIZE that MAIL declared for the open transaction; 0 if none.
    pub(crate) fn declared_size(&self) -> u64 {
        self.transaction.as_ref().and_then(|transaction| transaction.size).unwrap_or(0)
    }

    /// The replies that refused mail without a delivery since the last call: mail that is too big or invalid, or
    /// that there is no memory for.
    pub(crate) fn take_refusals(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.refusals)
    }

    /// The input that the session waits for.
    pub(crate) fn awaited_input(&self) -> AwaitedInput {
        let in_data = matches!(self.state, SessionState::Data(_) | SessionState::Chunk(_));
        AwaitedInput { completed: self.completed, data: in_data.then_some(self.data_octets) }
    }

    /// Whether the session was closed after too many errors.
    pub(crate) fn has_too_many_errors(&self) -> bool {
        self.errors >= self.settings.max_errors
    }

    /// Continues with `input`, which is what was not consumed before and what was read since.
    /// Appends replies to `out`.
    pub(crate) fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            if out.len() >= REPLIES_MAX && !rest.is_empty() && !matches!(self.state, SessionState::Closed) {
                return Step { consumed, action: Action::Flush };
            }
            let (octets, action) = match &mut self.state {
                SessionState::Closed => (0, Some(Action::Close)),
                SessionState::CheckingRecipients | SessionState::Delivering => (0, Some(Action::Read)),
                SessionState::Command | SessionState::Authenticating(_) => self.feed_line(rest, out),
                SessionState::SkippingLine { previous_was_cr } => {
                    let (octets, ended) = command_line::skip_line(rest, previous_was_cr);
                    if ended {
                        self.state = SessionState::Command;
                        self.completed += 1;
                        self.reply(reply::LINE_TOO_LONG, out);
                    }
                    (octets, (!ended).then_some(Action::Read))
                }
                SessionState::Data(message) => {
                    let (octets, ended) = message.receive_dotted(rest);
                    self.data_octets += octets as u64;
                    (octets, if ended { self.end_data(out) } else { Some(Action::Read) })
                }
                SessionState::Chunk(chunk) => {
                    let octets = usize::try_from(chunk.remaining).unwrap_or(usize::MAX).min(rest.len());
                    if let Ok(message) = &mut chunk.message {
                        message.receive_chunk(&rest[..octets]);
                    }
                    chunk.remaining -= octets as u64;
                    let ended = chunk.remaining == 0;
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

    /// Replies to the RCPTs of [`Action::CheckRecipients`], in their order.
    pub(crate) fn recipients_checked(
        &mut self,
        results: impl IntoIterator<Item = Result<AcceptedRecipient, RecipientRejection>>,
        out: &mut Vec<u8>,
    ) {
        self.state = SessionState::Command;
        for result in results {
            match (result, &mut self.transaction) {
                (Ok(recipient), Some(transaction)) => {
                    transaction.add(recipient);
                    reply::RECIPIENT_OK.write(out);
                }
                (Ok(_), None) => self.reply(reply::MAIL_FIRST, out),
                (Err(rejection), transaction) => {
                    let rejection = Reply::from(rejection);
                    if let Some(transaction) = transaction {
                        transaction.deferred |= !rejection.is_permanent();
                    }
                    self.reply(rejection, out);
                }
            }
            if matches!(self.state, SessionState::Closed) {
                return;
            }
        }
    }

    /// Replies to the message of [`Action::Deliver`].
    pub(crate) fn delivered(&mut self, outcome: DeliveryOutcome, out: &mut Vec<u8>) {
        self.state = SessionState::Command;
        if outcome == DeliveryOutcome::Stored {
            self.errors = 0;
        }
        self.reply(outcome.into(), out);
    }

    /// Handles one line: a command, or a response of AUTH. Returns the octets consumed, and an action unless the
    /// session can continue by itself.
    fn feed_line(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Option<Action>) {
        let end = memchr(b'\n', &input[..input.len().min(command_line::LINE_MAX)]);
        let line = end.map(|end| &input[..end]);
        let has_pending = !self.pending_recipients.is_empty();
        if has_pending && !line.is_some_and(|line| self.joins_pending(line)) {
            self.state = SessionState::CheckingRecipients;
            return (0, Some(Action::CheckRecipients(std::mem::take(&mut self.pending_recipients))));
        }
        let Some(line) = line else {
            if input.len() < command_line::LINE_MAX {
                return (0, Some(Action::Read));
            }
            self.state = SessionState::SkippingLine { previous_was_cr: false };
            return (0, None);
        };
        let consumed = line.len() + 1;
        self.completed += 1;
        let action = match (self.without_line_end(line), &self.state) {
            (Some(line), SessionState::Authenticating(awaited)) => {
                let reply = self.continue_authentication(*awaited, line);
                self.reply(reply, out);
                None
            }
            (Some(line), _) => {
                let is_last_input = consumed == input.len();
                self.handle_command(line, is_last_input, out)
            }
            (None, _) => {
                self.reply(reply::BARE_LF_LINE, out);
                None
            }
        };
        (consumed, action)
    }

    /// Whether a line is a RCPT that can be checked together with those before it. One that is
    /// rejected without a check must be replied to after them.
    fn joins_pending(&self, line: &[u8]) -> bool {
        self.without_line_end(line).is_some_and(|line| {
            command_line::is_rcpt(line)
                && matches!(command_line::parse(line, self.settings.catches_all), Ok(Command::Rcpt(path)) if self.pending_recipient(path).is_ok())
        })
    }

    /// A line, given without its LF, without its CR; `None` if a bare LF may not end it.
    fn without_line_end<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        line.strip_suffix(b"\r").or(self.settings.catches_all.then_some(line))
    }

    /// A buffer for the message of the open transaction.
    ///
    /// # Errors
    /// The reply that there is no memory.
    fn open_message(&self, tenants: Vec<TenantKey>) -> Result<MessageData, Reply> {
        let buffer = self.settings.memory.open(self.peer.client, tenants)?;
        Ok(MessageData::begin(self.settings.data, buffer))
    }

    /// Appends the reply that refuses a mail.
    fn refuse(&mut self, reply: Reply, out: &mut Vec<u8>) {
        self.refusals.push(reply);
        self.reply(reply, out);
    }

    /// Appends a reply, and closes the session after too many errors.
    fn reply(&mut self, reply: Reply, out: &mut Vec<u8>) {
        reply.write(out);
        if !reply.is_permanent() {
            return;
        }
        self.errors += 1;
        if self.errors >= self.settings.max_errors && !matches!(self.state, SessionState::Closed) {
            reply::TOO_MANY_ERRORS.write(out);
            self.state = SessionState::Closed;
        }
    }
}
