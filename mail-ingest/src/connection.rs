//! Connections: bytes between socket and session, and the deadlines of clients.

mod client_stream;
mod deadline;
mod health_check;
mod server;
mod session_activity;
mod timeouts;

pub(crate) use server::Server;
pub(crate) use session_activity::SessionActivity;
pub(crate) use timeouts::Timeouts;
