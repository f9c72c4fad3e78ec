//! The commands of a session, except the data of DATA and BDAT.

use tempmail_model::address::AddressError;

use super::{Action, Chunk, Session, SessionSettings, SessionState};
use crate::smtp::auth::{self, Awaited};
use crate::smtp::command::{self as command_line, Command, MailCommand};
use crate::smtp::reply::{self, Reply};
use crate::smtp::{PendingRecipient, Transaction};

impl Session {
    /// Handles a command line without its CRLF. `is_last_input`: the client has sent nothing after
    /// it.
    pub(super) fn handle_command(
        &mut self,
        line: &[u8],
        is_last_input: bool,
        out: &mut Vec<u8>,
    ) -> Option<Action> {
        let command = match command_line::parse(line, self.settings.catches_all) {
            Ok(command) => command,
            Err(rejection) => {
                self.reply(rejection, out);
                if [reply::BDAT_SYNTAX, reply::PROXY_REFUSED].contains(&rejection) {
                    self.state = SessionState::Closed;
                }
                return None;
            }
        };
        let reply = match command {
            Command::Ehlo(name) => {
                self.greet(name, true);
                self.write_extensions(out);
                return None;
            }
            Command::Helo(name) => {
                self.greet(name, false);
                out.extend_from_slice(format!("250 {}\r\n", self.settings.hostname).as_bytes());
                return None;
            }
            Command::Mail(mail) => self.start_transaction(&mail),
            Command::Rcpt(path) => match self.pending_recipient(path) {
                Ok(recipient) => {
                    self.pending_recipients.push(recipient);
                    return None;
                }
                Err(rejection) => rejection,
            },
            Command::Data => self.start_data(),
            Command::Bdat { octets, last } => {
                let message = self.start_chunk(octets);
                self.state = SessionState::Chunk(Chunk { remaining: octets, last, message });
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
                self.state = SessionState::Closed;
                reply::BYE
            }
            Command::StartTls => return self.start_tls(is_last_input, out),
            Command::Auth(arguments) => self.start_authentication(arguments),
        };
        self.reply(reply, out);
        None
    }

    fn greet(&mut self, name: &str, extended: bool) {
        self.hello = Some((command_line::sanitize_hello(name), extended));
        self.transaction = None;
    }

    fn write_extensions(&self, out: &mut Vec<u8>) {
        let SessionSettings { hostname, data, max_recipients, tls_offered, catches_all, .. } =
            &*self.settings;
        let starttls = if *tls_offered && !self.tls { "250-STARTTLS\r\n" } else { "" };
        let auth = if *catches_all { "250-AUTH PLAIN LOGIN\r\n" } else { "" };
        let size = data.message_octets;
        out.extend_from_slice(
            format!(
                "250-{hostname}\r\n250-PIPELINING\r\n250-SIZE {size}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
                 250-CHUNKING\r\n250-ENHANCEDSTATUSCODES\r\n{starttls}{auth}250 LIMITS RCPTMAX={max_recipients}\r\n"
            )
            .as_bytes(),
        );
    }

    /// The reply to MAIL, which opens a transaction.
    fn start_transaction(&mut self, mail: &MailCommand<'_>) -> Reply {
        if self.hello.is_none() {
            return reply::HELLO_FIRST;
        }
        if self.transaction.is_some() {
            return reply::NESTED_MAIL;
        }
        if mail.size.is_some_and(|size| size > self.settings.data.message_octets) {
            return reply::TOO_BIG;
        }
        self.transactions += 1;
        self.transaction = Some(Transaction::new(mail.sender.to_owned(), mail.utf8, mail.size));
        reply::SENDER_OK
    }

    /// The recipient of a RCPT, which is checked outside.
    ///
    /// # Errors
    /// The reply that rejects it without a check.
    pub(super) fn pending_recipient(&self, path: &str) -> Result<PendingRecipient, Reply> {
        let transaction = self.transaction.as_ref().ok_or(reply::MAIL_FIRST)?;
        if transaction.chunks.is_some() {
            return Err(reply::CHUNKING_STARTED);
        }
        if transaction.recipients.len() + self.pending_recipients.len() >= self.settings.max_recipients {
            return Err(reply::TOO_MANY_RECIPIENTS);
        }
        if !path.is_ascii() && !transaction.utf8 && !self.settings.catches_all {
            return Err(reply::RECIPIENT_NON_ASCII);
        }
        if path.eq_ignore_ascii_case("postmaster") {
            return Ok(PendingRecipient::Postmaster);
        }
        match self.settings.addresses().parse(path) {
            Ok(address) => Ok(PendingRecipient::Address(address)),
            Err(AddressError::AddressLiteral) => Err(reply::NOT_SERVED),
            Err(AddressError::Malformed | AddressError::NeedsQuotes) => Err(reply::BAD_RECIPIENT),
        }
    }

    fn start_tls(&mut self, is_last_input: bool, out: &mut Vec<u8>) -> Option<Action> {
        let rejection = if self.tls {
            reply::TLS_ACTIVE
        } else if !self.settings.tls_offered {
            reply::NOT_IMPLEMENTED
        } else if is_last_input {
            self.state = SessionState::Closed;
            reply::START_TLS.write(out);
            return Some(Action::StartTls);
        } else {
            self.state = SessionState::Closed;
            reply::DATA_AFTER_STARTTLS
        };
        self.reply(rejection, out);
        None
    }
}

impl Session {
    /// The reply to AUTH.
    pub(super) fn start_authentication(&mut self, arguments: &str) -> Reply {
        if self.hello.is_none() {
            reply::HELLO_FIRST
        } else if self.authenticated || self.transaction.is_some() {
            reply::AUTH_OUT_OF_PLACE
        } else {
            self.await_response(auth::start(arguments))
        }
    }

    /// The reply to a line of the client that was awaited.
    pub(super) fn continue_authentication(&mut self, awaited: Awaited, line: &[u8]) -> Reply {
        self.await_response(auth::respond(awaited, line))
    }

    fn await_response(&mut self, next: Result<Option<Awaited>, Reply>) -> Reply {
        self.state = SessionState::Command;
        match next {
            Ok(Some(awaited)) => {
                self.state = SessionState::Authenticating(awaited);
                awaited.challenge()
            }
            Ok(None) => {
                self.authenticated = true;
                reply::AUTHENTICATED
            }
            Err(rejection) => rejection,
        }
    }
}
