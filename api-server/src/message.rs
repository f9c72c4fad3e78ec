//! Messages as clients receive them: summaries, the full message, raw data and attachments.

mod budget;
mod disposition;
mod document;
mod download;
mod extraction;
mod found;
mod full;
mod page;
mod pieces;
mod raw;
mod renderer;
mod summary;
mod texts;
mod turns;

pub(crate) use document::DocumentLink;
pub(crate) use extraction::Extraction;
pub(crate) use found::{FoundEmail, WantedEmail};
pub(crate) use full::{Email, FullMessage};
pub(crate) use page::list_messages;
pub(crate) use raw::INITIAL_CHUNK;
pub(crate) use renderer::MessageRenderer;
pub(crate) use summary::{EmailSummary, MessageList, OwnedMessageList};
