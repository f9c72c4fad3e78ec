//! SMTP without I/O: bytes in, in any split; replies and actions out. RFC 5321 with
//! PIPELINING (2920), SIZE (1870), 8BITMIME (6152), SMTPUTF8 (6531), CHUNKING (3030),
//! ENHANCEDSTATUSCODES (2034), STARTTLS (3207) and LIMITS (9422); in a sink AUTH (4954).

mod auth;
mod command;
mod data;
mod path;
pub(crate) mod reply;
mod session;
mod transaction;

pub(crate) use data::DataLimits;
pub(crate) use reply::Reply;
pub(crate) use session::{Action, AwaitedInput, Session, SessionSettings};
pub(crate) use transaction::{
    AcceptedRecipient, DeliveryOutcome, Peer, PendingRecipient, ReceivedMail, RecipientRejection,
};
