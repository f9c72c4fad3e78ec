//! The configuration: one YAML file, overridden by `TEMPMAIL_…` environment variables.
//! `tempmail config` prints the reference of all keys.

mod client;
mod default;
mod environment;
mod error;
mod load;
mod reference;
mod removed;
mod schema;
mod secret;
mod service_link;
mod settings;
mod validate;

pub use client::ClientEnvironment;
pub use error::ConfigError;
pub use load::Sources;
pub use reference::reference;
pub use removed::RemovedSetting;
pub use schema::is_setting;
pub use secret::Secret;
pub use settings::{
    Addresses, Admin, Compat, Config, Dns, DnsMode, DropIn, Http, Key, KeyRing, LogFormat, Mcp, Operator,
    Postgres, Redis, Retention, Smtp, SmtpTls, Telemetry, Webhooks, Worker,
};
