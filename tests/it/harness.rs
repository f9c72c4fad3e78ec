//! Tests of the harness itself.

mod fleet;
mod follower;
mod network;
mod streams;
