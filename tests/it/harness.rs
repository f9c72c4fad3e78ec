//! What the other tests drive tempmail with: that it sees what is there.

mod fleet;
mod follower;
mod network;
mod sse;
mod websocket;
