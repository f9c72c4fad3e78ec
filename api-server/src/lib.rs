//! The HTTP interface: mailbox API (`/api`), Pro API (`/pro/api`) and token API (`/v1`).

mod account;
mod api_token;
mod arrivals;
mod auth;
mod client;
mod custom_domain;
mod error;
mod json_body;
mod limit;
mod listener;
mod long_poll;
mod mailbox_api;
mod message_view;
mod openapi;
mod parameter;
mod password;
mod place;
mod pro_api;
mod server;
mod sse;
mod state;
mod token_api;
mod websocket;

pub use server::{ApiServer, openapi_document};
