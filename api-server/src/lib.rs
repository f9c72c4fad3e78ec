//! The HTTP interface: mailbox API (`/api`) and token API (`/v1`).

mod arrivals;
mod auth;
mod client;
mod error;
mod limit;
mod long_poll;
mod mailbox_api;
mod message_view;
mod password;
mod server;
mod state;
mod token_api;

pub use server::ApiServer;
