//! The OpenAPI 3.1 document, from the table that routes requests: an operation is declared
//! where its handler is routed, so neither can be without the other.

mod callback;
mod document;
mod operation;
mod page;
mod published;
mod routes;

pub(crate) use document::document;
pub(crate) use operation::{Credential, Operation, attachment_index, email_id, path_id, query};
pub(crate) use published::routes;
pub(crate) use routes::Routes;
