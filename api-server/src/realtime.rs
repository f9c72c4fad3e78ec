//! The ways to receive new mail: long-polls, waits for one mail, server-sent events and WebSockets.

mod answer;
pub(crate) mod cursor;
pub(crate) mod filter;
mod filter_pages;
pub(crate) mod long_poll;
pub(crate) mod mail_wait;
pub(crate) mod sse;
pub(crate) mod subscription;
pub(crate) mod websocket;
