//! The data of a transaction: DATA, BDAT, and what becomes of them.

use super::{Action, Session, State};
use crate::delivery::{Protocol, ReceivedMail};
use crate::smtp::data::MessageData;
use crate::smtp::reply::{self, Reply};

impl Session {
    /// DATA.
    pub(super) fn data(&mut self) -> Reply {
        match &self.transaction {
            None => reply::MAIL_FIRST,
            Some(transaction) if transaction.chunks.is_some() => reply::CHUNKS_BEGUN,
            Some(transaction) if transaction.recipients.is_empty() => transaction.no_recipients(),
            Some(_) => match MessageData::begin(self.settings.data, self.settings.memory.permit()) {
                None => reply::NO_MEMORY,
                Some(message) => {
                    self.data_octets = 0;
                    self.state = State::Data(message);
                    reply::START_DATA
                }
            },
        }
    }

    /// The message that a BDAT chunk goes on with, or why its octets are to be skipped. Data is
    /// refused as soon as its size is known to be too big.
    pub(super) fn chunk(&mut self, octets: u64) -> Result<MessageData, Reply> {
        self.data_octets = 0;
        let transaction = self.transaction.as_mut().ok_or(reply::MAIL_FIRST)?;
        if transaction.recipients.is_empty() {
            return Err(transaction.no_recipients());
        }
        if octets > self.settings.data.message_octets {
            transaction.chunks = None;
            return Err(reply::TOO_BIG);
        }
        match transaction.chunks.take() {
            Some(message) => Ok(message),
            None => {
                MessageData::begin(self.settings.data, self.settings.memory.permit()).ok_or(reply::NO_MEMORY)
            }
        }
    }

    /// Behind CRLF . CRLF.
    pub(super) fn end_data(&mut self, out: &mut Vec<u8>) -> Option<Action> {
        let State::Data(message) = std::mem::replace(&mut self.state, State::Command) else { return None };
        self.finish(message, out)
    }

    /// Behind the last octet of a chunk.
    pub(super) fn end_chunk(&mut self, out: &mut Vec<u8>) -> Option<Action> {
        let State::Chunk(chunk) = std::mem::replace(&mut self.state, State::Command) else { return None };
        self.commands += 1;
        match (chunk.message, &mut self.transaction) {
            (Ok(message), Some(transaction)) => match message.fault() {
                None if chunk.last => return self.finish(message, out),
                None => {
                    transaction.chunks = Some(message);
                    reply::CHUNK_OK.write(out);
                }
                // The transaction is over: further chunks of a flight are refused as well.
                Some(refusal) => {
                    self.transaction = None;
                    self.answer(refusal, out);
                }
            },
            (Ok(_), None) => self.answer(reply::MAIL_FIRST, out),
            (Err(refusal), _) => {
                if refusal == reply::TOO_BIG || refusal == reply::NO_MEMORY {
                    self.transaction = None;
                }
                self.answer(refusal, out);
            }
        }
        None
    }

    /// The end of a message: the transaction is over, whatever becomes of it.
    fn finish(&mut self, message: MessageData, out: &mut Vec<u8>) -> Option<Action> {
        self.commands += 1;
        let transaction = self.transaction.take()?;
        let (data, memory) = match message.finish() {
            Ok(whole) => whole,
            Err(refusal) => {
                self.answer(refusal, out);
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
        self.state = State::Delivering;
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
