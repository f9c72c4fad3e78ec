//! Messages as clients receive them: summaries, the full message, raw data and attachments.

mod budget;
mod deletion;
mod digest;
pub(crate) mod disposition;
mod document;
mod download;
mod extraction;
mod folded;
mod found;
mod full;
mod pieces;
mod raw;
mod renderer;
mod summary;
mod texts;
mod used_documents;

pub(crate) use deletion::Deletion;
pub(crate) use digest::Digest;
pub(crate) use document::{Document, DocumentLink};
pub(crate) use extraction::Extraction;
pub(crate) use folded::folded;
pub(crate) use found::{FoundEmail, WantedEmail};
pub(crate) use full::{Email, FullMessage};
pub(crate) use pieces::{PieceWriter, Pieces};
pub(crate) use raw::INITIAL_CHUNK;
pub(crate) use renderer::MessageRenderer;
pub(crate) use summary::{EmailSummary, MessageList, OwnedMessageList};
pub(crate) use texts::MessageTexts;
pub(crate) use used_documents::UsedDocuments;
