//! The HTTP interface: mailbox API (`/api`), Pro API (`/pro/api`) and token API (`/v1`).
//!
//! A module imports only from those that stand above it in this list.
//!
//! | module | what it holds |
//! |---|---|
//! | `http` | connections, middleware, request extractors, limits and the error table |
//! | `openapi` | routes with their descriptions, and the document made of them |
//! | `auth` | the three credentials and their extractors |
//! | `message` | messages as JSON, raw data and attachments |
//! | `arrivals` | notifies subscribers of new mail and of changed rights |
//! | `state` | what every handler works with |
//! | `realtime` | long-polls, server-sent events and WebSockets |
//! | `resources` | tokens, custom domains, documents and mailboxes, as several surfaces manage them |
//! | `page` | the web page |
//! | `mailbox_api`, `pro_api`, `token_api` | the three surfaces |
//! | `compat` | drop-in surfaces: the interfaces of other services |
//! | `mcp` | the Model Context Protocol, whose tools are requests of `/v1` |
//! | `router` | all routes |
//! | `server` | the server that answers them |

mod arrivals;
mod auth;
mod compat;
mod http;
mod mailbox_api;
mod mcp;
mod message;
mod openapi;
mod page;
mod pro_api;
mod realtime;
mod resources;
mod router;
mod server;
mod state;
mod token_api;

pub use auth::SignInLink;
pub use router::{openapi_document, openapi_without_webhooks};
pub use server::ApiServer;
