//! DATA and BDAT, up to the end of the message.

use tempmail_model::trace::Protocol;

use super::{Action, Session, SessionState};
use crate::smtp::ReceivedMail;
use crate::smtp::data::MessageData;
use crate::smtp::reply::{self, Reply};

impl Session {
    /// The reply to DATA, after which a message may follow.
    pub(super) fn start_data(&mut self) -> Reply {
        match &self.transaction {
            None => reply::MAIL_FIRST,
            Some(transaction) if transaction.chunks.is_some() => reply::CHUNKING_STARTED,
            Some(transaction) if transaction.recipients.is_empty() => transaction.no_recipients_reply(),
            Some(transaction) => match self.open_message(transaction.tenants()) {
                Err(rejection) => {
                    self.refusals.push(rejection);
                    rejection
                }
                Ok(message) => {
                    self.data_octets = 0;
                    self.state = SessionState::Data(message);
                    reply::START_DATA
                }
            },
        }
    }

    /// The message that a BDAT chunk belongs to. It is rejected as soon as its size is known to be
    /// too big.
    ///
    /// # Errors
    /// The reply that rejects the chunk; its octets are skipped.
    pub(super) fn start_chunk(&mut self, octets: u64) -> Result<MessageData, Reply> {
        self.data_octets = 0;
        let transaction = self.transaction.as_mut().ok_or(reply::MAIL_FIRST)?;
        if transaction.recipients.is_empty() {
            return Err(transaction.no_recipients_reply());
        }
        if octets > self.settings.data.message_octets {
            transaction.chunks = None;
            return Err(reply::TOO_BIG);
        }
        if let Some(message) = transaction.chunks.take() {
            return Ok(message);
        }
        let tenants = transaction.tenants();
        self.open_message(tenants)
    }

    /// Handles the end of data.
    pub(super) fn end_data(&mut self, out: &mut Vec<u8>) -> Option<Action> {
        let SessionState::Data(message) = std::mem::replace(&mut self.state, SessionState::Command) else {
            return None;
        };
        self.finish_message(message, out)
    }

    /// Handles the end of a chunk.
    pub(super) fn end_chunk(&mut self, out: &mut Vec<u8>) -> Option<Action> {
        let SessionState::Chunk(chunk) = std::mem::replace(&mut self.state, SessionState::Command) else {
            return None;
        };
        self.completed += 1;
        match (chunk.message, &mut self.transaction) {
            (Ok(message), Some(transaction)) => match message.error_reply() {
                None if chunk.last => return self.finish_message(message, out),
                None => {
                    transaction.chunks = Some(message);
                    reply::CHUNK_OK.write(out);
                }
                // Ends the transaction, so that further pipelined chunks are rejected as well.
                Some(rejection) => {
                    self.transaction = None;
                    self.refuse(rejection, out);
                }
            },
            (Ok(_), None) => self.reply(reply::MAIL_FIRST, out),
            (Err(rejection), _) if rejection == reply::TOO_BIG || rejection.limit().is_some() => {
                self.transaction = None;
                self.refuse(rejection, out);
            }
            (Err(rejection), _) => self.reply(rejection, out),
        }
        None
    }

    /// Ends the transaction, and hands the message to delivery if it has no error.
    fn finish_message(&mut self, message: MessageData, out: &mut Vec<u8>) -> Option<Action> {
        self.completed += 1;
        let transaction = self.transaction.take()?;
        let (data, memory) = match message.finish() {
            Ok(whole) => whole,
            Err(rejection) => {
                self.refuse(rejection, out);
                return None;
            }
        };
        let (hello, extended) = self.hello.as_ref()?;
        let protocol = match (extended, transaction.utf8, self.tls) {
            (false, ..) => Protocol::Smtp,
            (true, false, false) => Protocol::Esmtp,
            (true, false, true) => Protocol::Esmtps,
            (true, true, false) => Protocol::Utf8Smtp,
            (true, true, true) => Protocol::Utf8Smtps,
        };
        self.state = SessionState::Delivering;
        Some(Action::Deliver(Box::new(ReceivedMail {
            peer: self.peer,
            hello: hello.clone(),
            protocol,
            sender: transaction.sender,
            recipients: transaction.recipients,
            data,
            memory,
        })))
    }
}
