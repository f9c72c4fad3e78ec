//! Scripts that Redis runs as one step, and the keys they use. All times are the server's.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, cmd};
use uuid::Uuid;

use crate::limit::RateKey;
use crate::permit::PermitKey;

/// Time after which the set of sessions expires if no process sends a heartbeat.
pub(super) const SESSIONS_TTL: Duration = Duration::from_secs(60);
/// Time after which the permits of a key expire if no process renews them.
pub(super) const PERMITS_TTL: Duration = Duration::from_secs(24 * 3600);

/// A script, and the hash by which the server knows it.
#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    hash: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    /// What the server replies to [`load`](Self::load).
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// The command that loads it into the server.
    pub(super) fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(self.source);
        command
    }

    /// The command that runs it, once it is loaded; arguments are to be added.
    pub(super) fn run(&self, keys: &[&str]) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&self.hash).arg(keys.len()).arg(keys);
        command
    }
}

/// Acquires one of the permits of a key.
pub(super) static ACQUIRE_PERMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/acquire_permit.lua")));
/// Moves a permit to another session.
pub(super) static MOVE_PERMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/move_permit.lua")));
/// Starts a session, or keeps it alive.
pub(super) static HEARTBEAT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/heartbeat.lua")));
/// Counts a request.
pub(super) static COUNT_REQUEST: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/count_request.lua")));
/// Counts a failure.
pub(super) static COUNT_FAILURE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/count_failure.lua")));
/// Uncounts a failure.
pub(super) static UNCOUNT_FAILURE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/uncount_failure.lua")));

/// Every script.
pub(super) static ALL: [&LazyLock<Script>; 6] =
    [&ACQUIRE_PERMIT, &MOVE_PERMIT, &HEARTBEAT, &COUNT_REQUEST, &COUNT_FAILURE, &UNCOUNT_FAILURE];

/// Names in Redis of one installation: they share a prefix and a hash tag, and contain ids and digests only.
#[derive(Debug)]
pub(super) struct RedisKeys {
    prefix: String,
}

impl RedisKeys {
    pub(super) fn new(installation: Uuid) -> Self {
        Self { prefix: format!("{{tempmail:{}}}", installation.simple()) }
    }

    /// The channel of arrivals.
    pub(super) fn arrivals(&self) -> String {
        format!("{}:arrivals", self.prefix)
    }

    /// The sorted set of live sessions, by the time at which each of them expires.
    pub(super) fn sessions(&self) -> String {
        format!("{}:sessions", self.prefix)
    }

    /// The sorted set of permits in use under a key: `<session>:<number>`, by the time at which each was
    /// acquired.
    pub(super) fn permits(&self, key: PermitKey) -> String {
        let name = match key {
            PermitKey::TokenWaits(token) => format!("token-waits:{}", token.simple()),
            PermitKey::TokenStreams(token) => format!("token-streams:{}", token.simple()),
            PermitKey::MailboxSockets(mailbox) => format!("mailbox-sockets:{}", mailbox.simple()),
            PermitKey::AddressWaits { tenant, address } => {
                format!("address-waits:{}:{}", tenant.simple(), address.simple())
            }
        };
        format!("{}:permits:{name}", self.prefix)
    }

    /// The time until which the requests of a key are used up.
    pub(super) fn rate(&self, limit: &str, key: RateKey) -> String {
        format!("{}:rate:{limit}:{}", self.prefix, key.as_uuid().simple())
    }

    /// The number of failures within the window of a key.
    pub(super) fn failures(&self, limit: &str, key: RateKey) -> String {
        format!("{}:failures:{limit}:{}", self.prefix, key.as_uuid().simple())
    }
}
