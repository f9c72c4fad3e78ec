//! Messages as clients receive them: summaries, the full message, raw data and attachments.

mod budget;
mod deletion;
mod digest;
mod document;
mod download;
mod extraction;
mod found;
mod full;
mod raw;
mod renderer;
mod summary;
mod texts;

pub(crate) use budget::{PieceWriter, Pieces};
pub(crate) use deletion::Deletion;
pub(crate) use digest::Digest;
pub(crate) use document::{Document, DocumentLink, UsedDocuments};
pub(crate) use download::disposition;
pub(crate) use extraction::Extraction;
pub(crate) use found::{FoundEmail, WantedEmail};
pub(crate) use full::{Email, FullMessage};
pub(crate) use raw::INITIAL_CHUNK;
pub(crate) use renderer::MessageRenderer;
pub(crate) use summary::{EmailSummary, MessageList, OwnedMessageList};
pub(crate) use texts::{MessageTexts, folded};
