//! The bus of processes that share a Redis: an [`LocalBus`] and what they tell each other.
//!
//! Whatever is asked, the process' own part answers first, and Redis where it is well. It is well
//! while commands are answered within 500 ms and a probe comes back over the channel within 2 s;
//! else both connections are dropped and made anew (waits of at most 1 s), and limits hold in each
//! process alone until then, without any request waiting for Redis. So at most as many places
//! and requests as there are processes times the limit are let in.
//!
//! Redis holds nothing that is not there again by itself. It knows ids and digests only.

mod away;
mod backoff;
mod commands;
mod desk;
mod health;
mod lease;
mod limit;
mod link;
mod message;
mod name;
mod probe;
mod publisher;
mod script;
mod subscription;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::{Client, IntoConnectionInfo as _, RedisResult};
use tempmail_model::message::Arrival;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{
    ArrivalReceiver, Attempt, Bus, FailureLimit, LocalBus, Permit, PermitKey, RateDecision, RateKey,
    RateLimit,
};
use commands::Gate;
use desk::Desk;
use lease::Leases;
use link::Link;
use name::Names;
use publisher::{Outbox, Publisher};

pub(crate) use lease::Lease;

/// The URL is not one of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a URL of Redis, such as redis://user:password@host:6379/0")]
pub struct InvalidRedisUrl;

/// See the module.
pub struct RedisBus {
    local: Arc<LocalBus>,
    gate: Arc<Gate>,
    leases: Leases,
    outbox: Outbox,
}

impl RedisBus {
    /// Begins to connect to the Redis at `url` (`redis:`, `rediss:` for TLS, `unix:` for a
    /// socket), which other installations may use too, and returns when it is known whether it is
    /// well. One that is away is waited for in the background.
    ///
    /// # Errors
    /// [`InvalidRedisUrl`].
    pub async fn connect(url: &str, installation: Uuid) -> Result<Self, InvalidRedisUrl> {
        let client = client(url).map_err(|_| InvalidRedisUrl)?;
        let names = Arc::new(Names::new(installation));
        let (channel, sender) = (names.arrivals(), Uuid::new_v4());
        let local = Arc::new(LocalBus::new());
        let gate = Arc::new(Gate::new(names.clone()));
        let (leases, held, operations) = Leases::new();
        let (outbox, publisher) = Publisher::new(channel.clone(), sender);
        let (first, known) = oneshot::channel();
        let link = Link {
            client,
            channel,
            sender,
            local: local.clone(),
            gate: gate.clone(),
            desk: Desk::new(names, held, operations),
            publisher,
            first: Some(first),
        };
        tokio::spawn(link.run());
        // Dropped when it is known.
        let _ = known.await;
        Ok(Self { local, gate, leases, outbox })
    }

    /// Whether limits hold over all processes now.
    pub fn is_connected(&self) -> bool {
        self.gate.commands().is_some()
    }
}

/// The client of a URL. Its error may quote the URL, which holds a password.
fn client(url: &str) -> RedisResult<Client> {
    let server = url.into_connection_info()?;
    // The client's own name is one more command, and one more right.
    let settings = server.redis_settings().clone().set_skip_set_lib_name();
    Client::open(server.set_redis_settings(settings))
}

impl Bus for RedisBus {
    fn publish(&self, arrivals: Vec<Arrival>) {
        // An empty batch would say something else.
        if arrivals.is_empty() {
            return;
        }
        let arrivals: Arc<[Arrival]> = arrivals.into();
        if let Err(lost) = self.outbox.try_send(arrivals.clone()) {
            publisher::count_lost(lost.into_inner().len());
        }
        self.local.deliver(arrivals);
    }

    fn subscribe(&self) -> ArrivalReceiver {
        self.local.subscribe()
    }

    fn acquire(&self, key: PermitKey, max: usize) -> BoxFuture<'_, Option<Permit>> {
        async move {
            let place = self.local.place(key, max)?;
            let lease = self.leases.take(key, max).await?;
            Some(Permit::with_lease(place, lease))
        }
        .boxed()
    }

    fn check_rate<'a>(&'a self, limit: &'a RateLimit, key: RateKey) -> BoxFuture<'a, RateDecision> {
        async move {
            let own = limit.check(key);
            if !own.allowed {
                return own;
            }
            limit::count(&self.gate, limit, key).await.unwrap_or(own)
        }
        .boxed()
    }

    fn begin_attempt<'a>(
        &'a self,
        limit: &'a FailureLimit,
        key: RateKey,
    ) -> BoxFuture<'a, Result<Attempt<'a>, Duration>> {
        async move {
            let own = limit.begin(key)?;
            match limit::attempt(&self.gate, limit, key).await {
                Some(Ok(())) => Ok(own.counted_in(Counted(self.gate.clone()))),
                Some(Err(wait)) => {
                    own.record_success().await;
                    Err(wait)
                }
                None => Ok(own),
            }
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.leases.close().boxed()
    }
}

impl fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBus").field("is_connected", &self.is_connected()).finish_non_exhaustive()
    }
}

/// A failure that Redis counted too.
pub(crate) struct Counted(Arc<Gate>);

impl Counted {
    /// Takes it back there.
    pub(crate) async fn take_back(&self, limit: &FailureLimit, key: RateKey) {
        limit::take_back(&self.0, limit, key).await;
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}
