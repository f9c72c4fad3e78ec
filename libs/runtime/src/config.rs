//! The configuration: one YAML file, overridden by `TEMPMAIL_…` environment variables.
//! `tempmail config` prints the reference of all keys.

mod background;
mod environment;
mod http;
mod limits;
mod load;
mod process;
mod removed;
mod setting;
mod smtp;
mod validate;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tempmail_model::address::{AddressSyntax, ReservedLocalParts};
use uuid::Uuid;

pub use background::{Dns, DnsMode, Operator, Webhooks, Worker};
pub use environment::ClientEnvironment;
pub use http::{Compat, DropIn, Http, Mcp};
pub use limits::{Addresses, Limits, Retention};
pub use load::Sources;
pub use process::{Admin, Key, KeyRing, LogFormat, Postgres, Redis, Secret, Telemetry};
pub use removed::RemovedSetting;
pub use setting::{is_setting, reference};
pub use smtp::{Smtp, SmtpTls};

use setting::{Bound, Setting};

/// The settings of each group, in the order of the reference.
const SETTINGS: [&[Setting]; 17] = [
    Postgres::SETTINGS,
    Redis::SETTINGS,
    Http::SETTINGS,
    Mcp::SETTINGS,
    Compat::SETTINGS,
    Smtp::SETTINGS,
    Admin::SETTINGS,
    KeyRing::JWT,
    KeyRing::SECRETS,
    Retention::SETTINGS,
    Addresses::SETTINGS,
    Dns::SETTINGS,
    Webhooks::SETTINGS,
    Worker::SETTINGS,
    Operator::SETTINGS,
    Limits::SETTINGS,
    Telemetry::SETTINGS,
];

/// Bounds that are no settings: nobody has a reason to change them but a test, which does so with `TEMPMAIL_TUNING`.
const BOUNDS: [&[Bound]; 6] =
    [Http::BOUNDS, Smtp::BOUNDS, Admin::BOUNDS, Dns::BOUNDS, Operator::BOUNDS, Limits::BOUNDS];

/// All settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The database.
    pub postgres: Postgres,
    /// Redis, over which the processes share limits and announce new mail.
    pub redis: Redis,
    /// The HTTP interface.
    pub http: Http,
    /// The Model Context Protocol over HTTP.
    pub mcp: Mcp,
    /// Drop-in surfaces.
    pub compat: Compat,
    /// Inbound SMTP.
    pub smtp: Smtp,
    /// Probes and metrics.
    pub admin: Admin,
    /// Keys of mailbox JWTs.
    pub jwt: KeyRing,
    /// Keys that seal cursors and encrypt secrets at rest.
    pub secrets: KeyRing,
    /// How long mail is kept.
    pub retention: Retention,
    /// Reserved addresses.
    pub addresses: Addresses,
    /// Verification of custom domains.
    pub dns: Dns,
    /// Delivery to webhooks.
    pub webhooks: Webhooks,
    /// Background work.
    pub worker: Worker,
    /// Kubernetes resources.
    pub operator: Operator,
    /// What users may have.
    pub limits: Limits,
    /// Logs and traces.
    pub telemetry: Telemetry,
    /// The tenant whose sink this process is: it owns all mail that no mailbox and no custom domain does. Only
    /// `tempmail up --sink` sets it; it is no setting.
    #[serde(skip)]
    pub sink: Option<Uuid>,
    /// The removed settings that file or environment still set.
    #[serde(skip)]
    pub removed: Vec<RemovedSetting>,
}

impl Default for Config {
    fn default() -> Self {
        serde_json::from_value(setting::defaults()).expect("a default has the type of its field")
    }
}

impl Config {
    /// The reserved local parts of system domains (`addresses.reserved`); none in a sink.
    pub fn reserved_local_parts(&self) -> ReservedLocalParts {
        ReservedLocalParts::new(&self.addresses.reserved).with_sink(self.sink.is_some())
    }

    /// Which addresses can have mail: in a sink, all that SMTP can name.
    pub fn address_syntax(&self) -> AddressSyntax {
        if self.sink.is_some() { AddressSyntax::Caught } else { AddressSyntax::Hosted }
    }
}

/// Why the configuration is invalid: one sentence that names the key, and never a value.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file, or one that a variable names, can't be read.
    #[error("{what} names {path}, which can't be read: {source}")]
    Unreadable {
        /// The flag or variable that names the file.
        what: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a YAML mapping.
    #[error("{path} is not a YAML file of settings{place}")]
    NotYaml {
        /// The file.
        path: PathBuf,
        /// The line of the error, if known.
        place: String,
    },
    /// The file has an unknown key.
    #[error("`{0}` is not a key of the configuration; `tempmail config` lists them all")]
    UnknownKey(String),
    /// The environment has an unknown variable.
    #[error(
        "the environment variable {0} sets no key of the configuration; `tempmail config` lists them all"
    )]
    UnknownVariable(String),
    /// The environment has an unknown variable of clients.
    #[error(
        "the environment variable {0} is unknown: clients read TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN"
    )]
    UnknownClientVariable(String),
    /// A variable and its `…_FILE` are both set.
    #[error("`{0}` is set twice in the environment: by its variable and by a file")]
    SetTwice(&'static str),
    /// A value is invalid.
    #[error("`{key}` must be {expected}")]
    InvalidValue {
        /// The key.
        key: String,
        /// What is valid, to complete "must be …".
        expected: &'static str,
    },
    /// Two keys contradict each other.
    #[error("{0}")]
    Conflict(&'static str),
}
