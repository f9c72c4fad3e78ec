//! What processes of several roles have: `postgres.*`, `redis.*`, `admin.*`, `jwt.*`, `secrets.*` and `telemetry.*`.

#![expect(missing_docs, reason = "`SETTINGS` describes each field that is a setting")]

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize, Serializer};
use tempmail_model::role_prefix::RolePrefix;

use super::Config;
use super::setting::{Bound, Kind, Setting, address, bound, count, setting};
use super::validate::{any_text, is_base_url, is_log_filter};

/// `postgres.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postgres {
    pub url: Secret,
    pub pool: u32,
    pub role_prefix: RolePrefix,
}

impl Postgres {
    pub(super) const SETTINGS: &[Setting] = &[
        setting(
            "postgres.url",
            Kind::Secret,
            "a URL, such as postgres://user:password@host/database",
            "Postgres connection URL; each role should have a login of its own. Required, except by `up`.",
        ),
        count(
            "postgres.pool",
            10,
            "Maximum connections of a role; `api` holds one more, to follow the message stream, and `operator` two, to end lost grants.",
        ),
        setting(
            "postgres.role_prefix",
            Kind::Text { default: Some(RolePrefix::DEFAULT), is_valid: any_text },
            "1 to 54 of a-z, 0-9 and _ that begin with a letter or _, and not pg or pg_…",
            "Begins the names of the Postgres roles to which `migrate` grants rights: `tempmail_ingest`, `tempmail_api`, `tempmail_worker`, `tempmail_operator`. Roles are a server's: installations that share one need different prefixes.",
        ),
    ];
}

/// `redis.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    pub url: Secret,
}

impl Redis {
    pub(super) const SETTINGS: &[Setting] = &[setting(
        "redis.url",
        Kind::Secret,
        "a URL, such as redis://user:password@host:6379/0, or with rediss:// for TLS",
        "Redis connection URL. The processes share limits and announce new mail over Redis. Without Redis, run a single `api` process: each enforces limits by itself.",
    )];
}

/// `admin.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    pub listen: SocketAddr,
    /// Maximum connections.
    pub connections: usize,
    /// Seconds within which a connection must be served.
    pub request_seconds: u64,
}

impl Admin {
    pub(super) const SETTINGS: &[Setting] =
        &[address("admin.listen", Some("[::]:9090"), "Address of `/livez`, `/readyz` and `/metrics`.")];
    pub(super) const BOUNDS: &[Bound] = &[bound("admin.connections", 64), bound("admin.request_seconds", 10)];
}

impl Default for Admin {
    fn default() -> Self {
        Config::default().admin
    }
}

/// A list of keys; the first signs or encrypts, all of them verify or decrypt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRing {
    /// At least one; secrets have at least 32 bytes, and no two are equal.
    pub keys: Vec<Key>,
}

/// What a key ring must be.
const KEY_RING: &str = "a list of {kid, secret}";

impl KeyRing {
    pub(super) const JWT: &[Setting] = &[setting(
        "jwt.keys",
        Kind::KeyList,
        KEY_RING,
        "Keys of mailbox JWTs: the first signs, all verify. Secrets have at least 32 bytes, and no two are equal. Required, except by `up`.",
    )];
    pub(super) const SECRETS: &[Setting] = &[setting(
        "secrets.keys",
        Kind::KeyList,
        KEY_RING,
        "Keys that seal cursors and encrypt secrets at rest: the first encrypts, all decrypt. Required, except by `up`.",
    )];

    /// Parses a file of keys, a JSON or YAML list of `{kid, secret}`. `None` if the text is something
    /// else.
    pub fn parse(text: &str) -> Option<Self> {
        serde_saphyr::from_str(text).ok().map(|keys| Self { keys })
    }
}

/// One key of a ring.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its name.
    pub kid: String,
    /// At least 32 bytes.
    pub secret: Secret,
}

/// A setting that is never printed: `Debug` shows `…`, serialising gives `***`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The value.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the setting is empty, as it is by default.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// `telemetry.*`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    pub log: String,
    pub format: Option<LogFormat>,
    pub otlp_endpoint: Option<String>,
    pub trace_one_in: u32,
}

impl Telemetry {
    pub(super) const SETTINGS: &[Setting] = &[
        setting(
            "telemetry.log",
            Kind::Text { default: Some("info"), is_valid: is_log_filter },
            "a log filter, such as info or warn,tempmail=debug",
            "Log filter. Libraries log warnings and errors only, whatever the filter says.",
        ),
        setting(
            "telemetry.format",
            Kind::Text { default: None, is_valid: any_text },
            "text or json",
            "Log format: by default `text` on a terminal, else `json`.",
        ),
        setting(
            "telemetry.otlp_endpoint",
            Kind::Text { default: None, is_valid: is_base_url },
            "an http or https URL without user and query, such as http://otel-collector:4318",
            "Collector of OpenTelemetry that gets spans over OTLP/HTTP, at the path `/v1/traces` below this URL. Without it there are no traces.",
        ),
        count(
            "telemetry.trace_one_in",
            1,
            "One message in this many is traced, chosen by its id; 1 traces all of them.",
        ),
    ];
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}
