//! The one stream: whoever follows it meets each mail exactly once.

mod follower;
mod order;
