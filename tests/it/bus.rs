//! The bus: what a local bus and one over Redis have in common, and what happens if Redis fails.

mod arrivals;
mod faults;
mod limits;
mod permits;
mod privacy;
mod program;
mod sessions;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tempmail_bus::{ArrivalReceiver, Bus, FailureLimit, LocalBus, PermitKey, RateLimit, RedisBus, SharedBus};
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{RedisProxy, RedisServer};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;
use uuid::Uuid;

/// Makes each rule a test of both kinds of bus.
macro_rules! rules {
    ($($rule:ident),+ $(,)?) => {
        mod local {
            $(#[tokio::test]
            async fn $rule() {
                super::$rule(&crate::bus::BusPair::local()).await;
            })+
        }
        mod redis {
            $(#[tokio::test]
            async fn $rule() {
                crate::bus::without_reconnections(crate::bus::BusPair::over_redis, super::$rule).await;
            })+
        }
    };
}
use rules;

/// The installation of the tests.
const INSTALLATION: Uuid = Uuid::from_u128(0x1234_5678);
/// What its names in Redis begin with.
const PREFIX: &str = "{tempmail:00000000000000000000000012345678}";
const HOUR: Duration = Duration::from_secs(3600);
/// More than a bus needs to close a connection that it gave up.
const RECONNECTION: Duration = Duration::from_secs(10);

/// Two handles of one bus.
struct BusPair {
    one: SharedBus,
    two: SharedBus,
    redis: Option<RedisServer>,
    /// Between `one` and Redis.
    proxy: Option<RedisProxy>,
    /// Connections that last as long as no bus reconnects.
    connections: BTreeSet<u64>,
}

impl BusPair {
    fn local() -> Self {
        let bus: SharedBus = Arc::new(LocalBus::new());
        Self { one: bus.clone(), two: bus, redis: None, proxy: None, connections: BTreeSet::new() }
    }

    async fn over_redis() -> Self {
        let redis = RedisServer::new();
        let url = redis.url();
        Self::connect(redis, &url, None).await
    }

    /// Commands of `one` pass a proxy.
    async fn over_proxy() -> Self {
        let redis = RedisServer::new();
        let proxy = RedisProxy::start(redis.port()).await;
        let url = proxy.url();
        Self::connect(redis, &url, Some(proxy)).await
    }

    async fn connect(redis: RedisServer, url_of_one: &str, proxy: Option<RedisProxy>) -> Self {
        let (one, two) = (connect(url_of_one).await, connect(&redis.url()).await);
        // It may have lost its connection meanwhile.
        wait_until_connected(&one).await;
        let connections = clients(&redis);
        Self { one, two, redis: Some(redis), proxy, connections }
    }

    /// A rate limit for each handle: processes share nothing but its name.
    fn rate_limits(&self, limit: u32, window: Duration) -> [Arc<RateLimit>; 2] {
        let of_one = Arc::new(RateLimit::new("test", limit, window));
        let of_two = match self.redis {
            Some(_) => Arc::new(RateLimit::new("test", limit, window)),
            None => of_one.clone(),
        };
        [of_one, of_two]
    }

    /// A failure limit for each handle.
    fn failure_limits(&self, max_failures: u32, window: Duration) -> [Arc<FailureLimit>; 2] {
        let of_one = Arc::new(FailureLimit::new("test", max_failures, window));
        let of_two = match self.redis {
            Some(_) => Arc::new(FailureLimit::new("test", max_failures, window)),
            None => of_one.clone(),
        };
        [of_one, of_two]
    }
}

/// Runs a scenario over Redis, and repeats it if it failed while a bus reconnected: on a busy machine a
/// command may take longer than the 500 ms after which a bus continues without Redis.
async fn without_reconnections(connect: impl AsyncFn() -> BusPair, scenario: impl AsyncFn(&BusPair)) {
    loop {
        let pair = connect().await;
        let redis = pair.redis.as_ref().expect("the pair is over Redis");
        if lasts_with_connections(redis, &pair.connections, scenario(&pair)).await {
            return;
        }
    }
}

/// Whether a scenario succeeds; `false` if it panics and one of these connections, which last longer than the
/// scenario, is lost.
pub(crate) async fn lasts_with_connections(
    redis: &RedisServer,
    connections: &BTreeSet<u64>,
    scenario: impl Future<Output = ()>,
) -> bool {
    let Err(panic) = AssertUnwindSafe(scenario).catch_unwind().await else { return true };
    // A command that took too long fails before its process closes the connection.
    let failed = Instant::now();
    while connections.is_subset(&clients(redis)) {
        if failed.elapsed() > RECONNECTION {
            resume_unwind(panic);
        }
        sleep(Duration::from_millis(20)).await;
    }
    false
}

/// Ids of the connections that a server has, but for the one that lists them.
pub(crate) fn clients(redis: &RedisServer) -> BTreeSet<u64> {
    let list: String = redis.query(&["CLIENT", "LIST"]);
    let others = list.lines().filter(|line| !line.contains("cmd=client"));
    let ids = others.filter_map(|line| line.split(' ').find_map(|field| field.strip_prefix("id=")));
    ids.map(|id| id.parse().expect("an id is a number")).collect()
}

/// A bus that is connected to Redis.
async fn connect(url: &str) -> Arc<RedisBus> {
    let bus = Arc::new(RedisBus::connect(url, INSTALLATION).await.unwrap());
    wait_until_connected(&bus).await;
    bus
}

async fn wait_until_connected(bus: &RedisBus) {
    eventually("the bus is connected", || async { bus.is_connected().then_some(()) }).await;
}

async fn wait_until_disconnected(bus: &RedisBus) {
    eventually("the bus is disconnected", || async { (!bus.is_connected()).then_some(()) }).await;
}

/// Waits until the only permit of a key is refused: while a bus is disconnected it grants one by itself.
async fn wait_until_refused(bus: &dyn Bus, key: PermitKey) {
    eventually("the permit is in use", || async { bus.acquire(key, 1).await.is_none().then_some(()) }).await;
}

/// Waits until the only permit of a key can be acquired, and releases it.
async fn wait_until_granted(bus: &dyn Bus, key: PermitKey) {
    eventually("the permit is available", || bus.acquire(key, 1)).await.release().await;
}

/// An arrival with this position.
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
async fn next_batch(arrivals: &mut ArrivalReceiver) -> Result<Arc<[Arrival]>, RecvError> {
    within_deadline("a batch is received", arrivals.recv()).await
}

/// The next `count` arrivals.
async fn receive(arrivals: &mut ArrivalReceiver, count: usize) -> Vec<Arrival> {
    let mut received = Vec::new();
    while received.len() < count {
        received.extend_from_slice(&next_batch(arrivals).await.unwrap());
    }
    received
}

/// Publishes an arrival on one bus until the subscriber receives it.
async fn publish_until_received(arrivals: &mut ArrivalReceiver, publisher: &dyn Bus) {
    let published = arrival(1);
    eventually("an arrival is received", || {
        publisher.publish(vec![published]);
        let mut received = std::iter::from_fn(|| arrivals.try_recv().ok());
        std::future::ready(received.any(|batch| batch.contains(&published)).then_some(()))
    })
    .await;
}
