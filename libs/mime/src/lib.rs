//! Messages of the real world (RFC 5322, RFC 2045 to 2047, RFC 2231) taken apart.
//!
//! Whatever the octets are: nothing recurses, nothing panics, and the work is linear in their
//! number, within the bounds that the modules name. Damage is never an error; as much as can be
//! read is shown.

mod excerpt;
mod header;
mod html;
mod structure;
pub mod text;
mod transfer;

pub use excerpt::Excerpt;
pub use header::{Address, Addresses, Field, decode_header, header_fields, parse_addresses};
pub use html::html_to_text;
pub use structure::{Attachment, Leaf, Leaves, Role, Structure, TooComplex};
pub use transfer::{TransferDecoder, TransferEncoding};
