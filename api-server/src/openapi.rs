//! The OpenAPI 3.1 document, built from the table that routes requests: an operation is declared where
//! its handler is routed, so that neither exists without the other.

mod callback;
mod document;
mod endpoints;
mod html;
mod operation;

pub(crate) use document::document;
pub(crate) use endpoints::{routes, without_webhooks};
pub(crate) use operation::Routes;
pub(crate) use operation::{Credential, Operation, attachment_index, email_id, path_id, query};
