//! What the processes of an installation tell each other: the same rules for the bus of one
//! process and for that over Redis, and what only Redis can do to it.

mod arrivals;
mod limits;
mod lost;
mod places;
mod privacy;
mod process;
mod restart;
mod session;

use std::sync::Arc;
use std::time::Duration;

use tempmail_bus::{ArrivalReceiver, Bus, FailureLimit, LocalBus, RateLimit, RedisBus, SharedBus};
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use tempmail_tests::RedisServer;
use tempmail_tests::wait::{eventually, within_deadline};
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

/// Makes each rule a test of both kinds of bus.
macro_rules! rules {
    ($($rule:ident),+ $(,)?) => {
        mod in_process {
            $(#[tokio::test]
            async fn $rule() {
                super::$rule(crate::bus::Pair::in_process()).await;
            })+
        }
        mod over_redis {
            $(#[tokio::test]
            async fn $rule() {
                super::$rule(crate::bus::Pair::over_redis().await).await;
            })+
        }
    };
}
use rules;

/// Whose processes the tests are.
const INSTALLATION: Uuid = Uuid::from_u128(0x1234_5678);
/// What everything of theirs in Redis begins with.
const PREFIX: &str = "{tempmail:00000000000000000000000012345678}";

/// Two handles of one bus.
struct Pair {
    one: SharedBus,
    two: SharedBus,
    redis: Option<RedisServer>,
}

impl Pair {
    fn in_process() -> Self {
        let bus: SharedBus = Arc::new(LocalBus::new());
        Self { one: bus.clone(), two: bus, redis: None }
    }

    async fn over_redis() -> Self {
        let redis = RedisServer::new();
        let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
        Self { one, two, redis: Some(redis) }
    }

    /// A rate limit as each of the two has it: processes share nothing but its name.
    fn rate_limits(&self, limit: u32, window: Duration) -> [Arc<RateLimit>; 2] {
        let of_one = Arc::new(RateLimit::new("test", limit, window));
        let of_two = match self.redis {
            Some(_) => Arc::new(RateLimit::new("test", limit, window)),
            None => of_one.clone(),
        };
        [of_one, of_two]
    }

    /// A limit of failures as each of the two has it.
    fn failure_limits(&self, most: u32, window: Duration) -> [Arc<FailureLimit>; 2] {
        let of_one = Arc::new(FailureLimit::new("test", most, window));
        let of_two = match self.redis {
            Some(_) => Arc::new(FailureLimit::new("test", most, window)),
            None => of_one.clone(),
        };
        [of_one, of_two]
    }
}

/// A bus over a Redis that is well.
async fn connect(url: &str) -> Arc<RedisBus> {
    let bus = Arc::new(RedisBus::connect(url, INSTALLATION).await.unwrap());
    is_connected(&bus).await;
    bus
}

async fn is_connected(bus: &RedisBus) {
    eventually("Redis is well", || async { bus.is_connected().then_some(()) }).await;
}

async fn is_disconnected(bus: &RedisBus) {
    eventually("Redis is away", || async { (!bus.is_connected()).then_some(()) }).await;
}

/// The n-th arrival of a test.
fn arrival(seq: i64) -> Arrival {
    Arrival {
        seq,
        id: Uuid::new_v4(),
        class: RetentionClass::PRO,
        tenant: (seq % 2 == 0).then(Uuid::new_v4),
        owner: Uuid::new_v4(),
        inbox: Uuid::new_v4(),
    }
}

/// The next batch.
async fn next(hints: &mut ArrivalReceiver) -> Result<Arc<[Arrival]>, RecvError> {
    within_deadline("a batch comes", hints.recv()).await
}

/// The next `count` arrivals.
async fn receive(hints: &mut ArrivalReceiver, count: usize) -> Vec<Arrival> {
    let mut received = Vec::new();
    while received.len() < count {
        received.extend_from_slice(&next(hints).await.unwrap());
    }
    received
}

/// Publishes at one bus until the subscriber hears of it.
async fn hears(hints: &mut ArrivalReceiver, from: &dyn Bus) {
    let wanted = arrival(1);
    eventually("an arrival is heard of", || {
        from.publish(vec![wanted]);
        std::future::ready(
            std::iter::from_fn(|| hints.try_recv().ok()).any(|batch| batch.contains(&wanted)).then_some(()),
        )
    })
    .await;
}
