//! Errors as the surfaces publish them: one variant per code.
//!
//! `/api` and `/pro/api` answer `{"error": code, "message": sentence}`, `/v1` answers `{"error": code}`.
//! `/mcp` answers errors of JSON-RPC with the same code and sentence. No answer carries a cause; internal errors are
//! logged where they occur.

mod api;
pub(crate) mod code;
mod drop_in;
mod drop_in_error;
mod missing_message;
mod refusal;
mod store;
mod surface;
mod v1;

pub(crate) use api::ApiError;
pub(crate) use drop_in_error::{DropIn, DropInError};
pub(crate) use missing_message::MissingMessage;
pub(crate) use refusal::Refusal;
pub(crate) use store::StoreFailure;
pub(crate) use surface::{ErrorForm, MCP_PATHS, Surface};
pub(crate) use v1::V1Error;
