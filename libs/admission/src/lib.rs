//! Admission: what every bound of tempmail that one caller could use up alone is made of.
//!
//! - [`Shares`]: a sum with a bound. A key holds at most its cap, and at most what is left for others.
//! - [`Turns`]: so many at once, in turns by party and member, with a bounded queue and a deadline.
//! - [`Client`] and [`ClientNetwork`]: which addresses are one client.
//!
//! None of them displaces what was admitted, and none sleeps: what has no room is refused, or waits until there is some.

mod client;
mod shares;
mod turns;

pub use client::{Client, ClientNetwork, NETWORK_TIMES};
pub use shares::{Exceeded, Holder, Share, Shares};
pub use turns::{NoTurn, Turn, TurnBounds, TurnKey, Turns};
