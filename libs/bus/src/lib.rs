//! What the processes of an installation share: arrivals of mail, concurrency permits, rate limits and
//! failure limits.
//!
//! Nothing here is durable. A lost arrival costs latency (readers repair from the store); a lost permit or
//! counter costs fairness for a moment. So a bus that loses its connection falls back to the limits of its
//! own process, and callers never see an error.

mod bus;
mod limit;
mod local;
mod permit;
mod redis;

pub use bus::{ArrivalReceiver, Bus, SharedBus};
pub use limit::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit};
pub use local::LocalBus;
pub use permit::{Permit, PermitKey};

pub use self::redis::{InvalidRedisUrl, RedisBus};
