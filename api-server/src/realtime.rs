//! The ways to receive new mail: long-polls, waits for one mail, server-sent events and WebSockets.

mod answer;
pub(crate) mod cursor;
pub(crate) mod filter;
pub(crate) mod follower;
pub(crate) mod long_poll;
pub(crate) mod mail_wait;
pub(crate) mod scope;
pub(crate) mod sse;
pub(crate) mod websocket;
