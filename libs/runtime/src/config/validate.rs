//! Rules that the types of the settings can't express.

use std::collections::BTreeSet;

use axum::http::Uri;
use ipnet::IpNet;
use tempmail_model::address::normalize_domain;
use tracing_subscriber::EnvFilter;

use super::setting::{self, pointer};
use super::{Config, ConfigError};

impl Config {
    /// Checks each value, and values that depend on each other. Key rings are checked by
    /// [`Keys::from_config`](crate::keys::Keys::from_config), since not all roles need them.
    ///
    /// # Errors
    /// [`ConfigError::InvalidValue`] or [`ConfigError::Conflict`] for the first mistake.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let values = serde_json::to_value(self).unwrap_or_default();
        for setting in setting::settings() {
            let value = values.pointer(&pointer(setting.path));
            require(value.is_some_and(|value| setting.kind.accepts(value)), setting.path)?;
        }
        // Not printed, so not among the values.
        require(self.redis.url.is_empty() || is_redis_url(self.redis.url.expose()), "redis.url")?;
        require(are_different(&self.operator.watch_namespaces), "operator.watch_namespaces")?;
        if self.smtp.tls.cert.is_some() != self.smtp.tls.key.is_some() {
            return Err(ConfigError::Conflict("`smtp.tls.cert` and `smtp.tls.key` must be set together"));
        }
        // A peer holds at most what it leaves to others, and a large message leaves an eighth.
        if self.smtp.max_message_bytes.saturating_mul(3) > self.smtp.memory_bytes {
            return Err(ConfigError::Conflict(
                "`smtp.memory_bytes` must be at least three times `smtp.max_message_bytes`",
            ));
        }
        if self.smtp.max_message_bytes
            > self.smtp.memory_bytes_per_peer.min(self.smtp.memory_bytes_per_tenant)
        {
            return Err(ConfigError::Conflict(
                "`smtp.max_message_bytes` must not be above `smtp.memory_bytes_per_peer` or `smtp.memory_bytes_per_tenant`",
            ));
        }
        if self.limits.address_hold_days < 31 {
            return Err(ConfigError::Conflict(
                "`limits.address_hold_days` must be at least 31, more than the longest retention",
            ));
        }
        Ok(())
    }
}

fn require(valid: bool, path: &'static str) -> Result<(), ConfigError> {
    if valid {
        return Ok(());
    }
    let expected = setting::find(path).map_or("something else", |setting| setting.expected);
    Err(ConfigError::InvalidValue { key: path.to_owned(), expected })
}

/// Whether a text has the scheme of a Redis URL; the Redis client checks the rest.
fn is_redis_url(text: &str) -> bool {
    ["redis://", "rediss://", "unix://"].iter().any(|scheme| text.starts_with(scheme))
}

/// For settings whose type refuses all that is invalid.
pub(super) fn any_text(_: &str) -> bool {
    true
}

pub(super) fn is_host_name(text: &str) -> bool {
    normalize_domain(text).is_ok()
}

pub(super) fn is_log_filter(text: &str) -> bool {
    EnvFilter::try_new(text).is_ok()
}

/// Whether a text is an RFC 1123 subdomain, as names of Kubernetes objects are.
pub(super) fn is_object_name(text: &str) -> bool {
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphanumeric())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

pub(super) fn is_object_name_or_empty(text: &str) -> bool {
    text.is_empty() || is_object_name(text)
}

/// Whether a text is an RFC 1123 label, as names of namespaces are.
pub(super) fn is_namespace(text: &str) -> bool {
    text.len() <= 63 && !text.contains('.') && is_object_name(text)
}

fn are_different(texts: &[String]) -> bool {
    texts.iter().collect::<BTreeSet<_>>().len() == texts.len()
}

/// Whether a text is an origin: scheme, host and perhaps a port, nothing after it.
pub(super) fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority() else { return false };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let host_only = !authority.as_str().contains('@') && !authority.host().is_empty();
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let valid_port = port.is_empty() || authority.port_u16().is_some();
    is_web
        && host_only
        && valid_port
        && text == format!("{}://{authority}", uri.scheme_str().unwrap_or_default())
}

/// Whether a text is a host without a port: a name, or an address (IPv6 in brackets).
pub(super) fn is_host(text: &str) -> bool {
    let authority = format!("http://{text}");
    is_origin(&authority) && authority.parse::<Uri>().is_ok_and(|uri| uri.host() == Some(text))
}

/// Whether a text is an origin, perhaps with a path, so that a path can be added to it.
pub(super) fn is_base_url(text: &str) -> bool {
    let host = text.find("://").map_or(0, |at| at + 3);
    let path = text[host..].find('/').map_or(text.len(), |at| host + at);
    is_origin(&text[..path]) && !text[path..].contains(['?', '#'])
}

/// Whether a text is a network without a bit behind its prefix: `10.1.2.3/8` is more likely a mistake. Nor is a network of
/// mapped addresses one, since these count as IPv4.
pub(super) fn is_network(text: &str) -> bool {
    text.parse::<IpNet>().is_ok_and(|network| {
        network.addr() == network.network() && network.addr().to_canonical() == network.addr()
    })
}

/// Whether a text is a network of load balancers: not of all addresses, which would let anyone claim any address.
pub(super) fn is_network_of_proxies(text: &str) -> bool {
    is_network(text) && text.parse::<IpNet>().is_ok_and(|network| network.prefix_len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_origins_of_scheme_host_and_port_only() {
        for valid in
            ["http://localhost:8080", "https://mail.example.com", "http://[::1]:80", "http://127.0.0.1"]
        {
            assert!(is_origin(valid), "{valid}");
        }
        for invalid in [
            "",
            "localhost",
            "ftp://a.example",
            "https://a.example/",
            "https://a.example/x",
            "https://u@a.example",
            "https://",
            "/x",
            "https://a.example?q",
            "http://a.example:port",
            "http://a.example:99999",
        ] {
            assert!(!is_origin(invalid), "{invalid}");
        }
    }

    #[test]
    fn accepts_hosts_without_a_port_only() {
        for valid in ["mail.example.com", "localhost", "192.0.2.1", "[2001:db8::1]"] {
            assert!(is_host(valid), "{valid}");
        }
        for invalid in ["", "mail.example.com:80", "http://mail.example.com", "u@a.example", "a.example/x"] {
            assert!(!is_host(invalid), "{invalid}");
        }
    }

    #[test]
    fn accepts_web_urls_without_credentials_and_query_as_a_base() {
        for valid in ["http://otel-collector:4318", "https://[::1]:4318/", "https://traces.example/otlp"] {
            assert!(is_base_url(valid), "{valid}");
        }
        for invalid in [
            "",
            "otel-collector:4318",
            "grpc://a.example",
            "http://u:hush@a.example",
            "http://a.example?a",
            "http://a.example/x?a",
            "/x",
        ] {
            assert!(!is_base_url(invalid), "{invalid}");
        }
    }

    #[test]
    fn accepts_the_defaults_and_finds_mistakes() {
        assert!(Config::default().validate().is_ok());
        let mistake = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert!(
            mistake(|c| c.smtp.hostname = "a b".into()).starts_with("`smtp.hostname` must be a host name")
        );
        let redis = mistake(|c| c.redis.url = String::from("http://:hush@redis").into());
        assert!(redis.starts_with("`redis.url` must be a URL") && !redis.contains("hush"), "{redis}");
        assert!(mistake(|c| c.smtp.max_recipients = 0).starts_with("`smtp.max_recipients` must be"));
        let bounded = "`smtp.max_recipients` must be a whole number from 1 to 1000";
        assert_eq!(mistake(|c| c.smtp.max_recipients = 1_001), bounded);
        let bounded = "`webhooks.timeout_seconds` must be";
        assert!(mistake(|c| c.webhooks.timeout_seconds = u64::MAX).starts_with(bounded));
        assert!(mistake(|c| c.limits.mailbox_bytes = 1 << 63).starts_with("`limits.mailbox_bytes` must be"));
        assert!(mistake(|c| c.smtp.tls.cert = Some("/x".into())).contains("together"));
        assert!(mistake(|c| c.smtp.max_message_bytes = c.smtp.memory_bytes / 2).contains("three times"));
        assert!(mistake(|c| c.limits.password_min = 129).starts_with("`limits.password_min` must be"));
        assert!(mistake(|c| c.telemetry.log = "a=b=c".into()).starts_with("`telemetry.log`"));
        let endpoint = mistake(|c| c.telemetry.otlp_endpoint = Some("http://u:hush@collector".into()));
        assert!(
            endpoint.starts_with("`telemetry.otlp_endpoint` must be") && !endpoint.contains("hush"),
            "{endpoint}"
        );
        assert!(mistake(|c| c.telemetry.trace_one_in = 0).starts_with("`telemetry.trace_one_in` must be"));
        for wrong in [["Team"].as_slice(), &["a.b"], &[""], &["a", "a"]] {
            let mut config = Config::default();
            config.operator.watch_namespaces = wrong.iter().map(|&name| name.to_owned()).collect();
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with("`operator.watch_namespaces` must be"), "{wrong:?}: {error}");
        }
        let host = mistake(|c| c.http.trusted_proxies = vec!["10.0.0.1/8".parse().unwrap()]);
        assert!(host.starts_with("`http.trusted_proxies`"), "{host}");
        let mapped = mistake(|c| c.webhooks.denied_networks = vec!["::ffff:10.0.0.0/104".parse().unwrap()]);
        assert!(mapped.starts_with("`webhooks.denied_networks`"), "{mapped}");
    }

    #[test]
    fn never_prints_secrets() {
        let mut config = Config::default();
        config.postgres.url = String::from("postgres://u:hush@h/d").into();
        config.redis.url = String::from("redis://u:hush@h").into();
        let printed = format!("{config:?} {}", serde_json::to_string(&config).unwrap());
        assert!(!printed.contains("hush"), "{printed}");
    }
}
