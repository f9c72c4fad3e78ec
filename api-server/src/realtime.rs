//! The three ways to receive new mail: long-polls, server-sent events and WebSockets.

mod answer;
pub(crate) mod cursor;
pub(crate) mod long_poll;
pub(crate) mod sse;
pub(crate) mod subscription;
pub(crate) mod websocket;
