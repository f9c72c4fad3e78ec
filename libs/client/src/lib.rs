//! A client of the token API (`/v1`): makes addresses, waits for mail, and finds its code or link.
//!
//! A module imports only from those that stand above it in this list.
//!
//! | module | what it holds |
//! |---|---|
//! | `error` | why there is no answer, or not the one that was requested |
//! | `token` | the live token, which is never printed |
//! | `transport` | what sends requests: HTTP, or a router of the same process |
//! | `http_transport` | requests over HTTP |
//! | `answer` | what the server answers |
//! | `selection` | codes and links that are safe to hand on |
//! | `request` | which mail a request is about |
//! | `client` | the requests of the token API, repeated where the server says so |
//! | `wait` | waits of any length, out of calls of a minute |
//! | `new_address` | an address that nobody used, with the cursor of its first mail |
//! | `shown_text` | text of strangers, without what a terminal or a reader would obey |

mod answer;
mod client;
mod error;
mod http_transport;
mod new_address;
mod request;
mod selection;
pub mod shown_text;
mod token;
mod transport;
mod wait;

pub use answer::{
    ActionLink, Attachment, Code, Email, EmailList, EmailSummary, Extraction, FoundEmail, HeaderField,
    MintedToken, ServerConfig, SystemDomain,
};
pub use client::Client;
pub use error::Error;
pub use http_transport::{HttpTransport, InvalidUrl};
pub use new_address::{NewAddress, RequestedAddress};
pub use request::{Feature, MailMatch, Scope, WaitRequest};
pub use selection::{LinkFilter, LinkKind, SafeLink, is_safe_code, safe_link};
pub use token::{InvalidToken, LiveToken};
pub use transport::{Answer, Transport, TransportError};
pub use wait::{FoundCode, FoundLink, LinkOutcome, WAIT_MAX, WaitOutcome};
