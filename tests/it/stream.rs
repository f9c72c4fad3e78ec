//! The one stream: whoever follows it meets each mail exactly once.

mod changes;
mod follower;
mod generation;
mod order;
