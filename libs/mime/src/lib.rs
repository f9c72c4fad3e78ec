//! A lenient parser of messages (RFC 5322, RFC 2045 to 2047, RFC 2231).
//!
//! It accepts any octets without recursion or panics, and its work is linear in their number, within
//! the bounds that the modules state. Damage is never an error: the parser returns what it can read.

mod excerpt;
mod header;
mod structure;
pub mod text;
mod transfer;

pub use excerpt::{Excerpt, html_to_text};
pub use header::{Address, Addresses, Field, decode_header, header_fields, parse_addresses};
pub use structure::{Attachment, Leaf, Leaves, Role, Structure, TooComplex};
pub use transfer::{TransferDecoder, TransferEncoding};
