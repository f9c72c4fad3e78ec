//! The default settings of tests.

use std::net::SocketAddr;

use serde_json::json;
use tempmail_runtime::config::{Config, DnsMode, Key, Secret};
use uuid::Uuid;

use crate::{receiver, tls};

/// Free ports of loopback, random keys, and no limits that only some tests are about.
pub(crate) fn test_config() -> Config {
    let mut config = Config::default();
    let loopback: SocketAddr = ([127, 0, 0, 1], 0).into();
    config.http.listen = loopback;
    config.smtp.listen = loopback;
    config.admin.listen = loopback;
    config.http.base_url = "http://127.0.0.1:8080".into();
    config.smtp.hostname = tls::NAME.into();
    let networks = vec!["127.0.0.0/8".parse().expect("a network"), "::1/128".parse().expect("a network")];
    config.http.unlimited_networks.clone_from(&networks);
    config.smtp.unlimited_networks = networks;
    config.limits.v1_per_second = 100_000;
    config.limits.minted_per_second = 100_000;
    config.limits.api_per_second = 100_000;
    config.limits.pro_per_second = 100_000;
    config.limits.free_mailboxes_per_hour = 100_000;
    config.limits.password_resets_per_minute = 100_000;
    config.limits.tenant_changes = 1_000_000;
    config.postgres.pool = 4;
    // Nothing answers there. Tests of DNS use a `TestDns`.
    config.dns.mode = DnsMode::Recursive;
    config.dns.servers = vec![([127, 0, 0, 1], 1).into()];
    config.jwt.keys = vec![random_key("jwt")];
    config.secrets.keys = vec![random_key("secrets")];
    config
}

/// Allows webhooks to receivers on loopback.
pub(crate) fn allow_receivers(config: &mut Config) {
    let networks = ["127.0.0.0/8", "::1/128"].map(|text| text.parse().expect("a network"));
    config.webhooks.allowed_networks = networks.to_vec();
    config.webhooks.ca_file = Some(receiver::ca_file());
}

/// A random key.
pub fn random_key(kid: &str) -> Key {
    let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    Key { kid: kid.into(), secret: secret_of(&secret) }
}

fn secret_of(text: &str) -> Secret {
    serde_json::from_value(json!(text)).expect("a secret is a text")
}
