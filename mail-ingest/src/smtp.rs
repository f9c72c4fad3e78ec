//! SMTP without I/O: octets in, in any split; replies and actions out. RFC 5321 with
//! PIPELINING (2920), SIZE (1870), 8BITMIME (6152), SMTPUTF8 (6531), CHUNKING (3030),
//! ENHANCEDSTATUSCODES (2034), STARTTLS (3207) and LIMITS (9422).

pub mod command;
pub mod data;
pub mod path;
pub mod reply;
pub mod session;
#[cfg(test)]
mod session_tests;
mod transaction;

pub use reply::{RecipientRefusal, Reply};
pub use session::{Action, RecipientToCheck, Session, Settings, Step, Waiting};
