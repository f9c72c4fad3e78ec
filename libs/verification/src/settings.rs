//! What an installation has for custom domains: settings, and the key of verify tokens, which is generated once and
//! kept in the store.

use std::net::IpAddr;

use jiff::SignedDuration;
use tempmail_model::address::normalize_domain;
use tempmail_model::key::MasterKey;
use tempmail_model::verify_token::{VerifyTokenKey, VerifyTokenKeySealer, VerifyTokenKeyUnopened};
use tempmail_runtime::config::Config;
use tempmail_store::{Store, StoreError};

/// The part of the configuration for custom domains.
#[derive(Debug, Clone)]
pub struct DomainSettings {
    /// The host that MX records have to name.
    pub mx_host: String,
    /// Names of the installation itself, which count as system domains.
    pub installation_names: Vec<String>,
    /// Time between two checks of a pending domain.
    pub interval: SignedDuration,
    /// How long a domain may be pending.
    pub pending: SignedDuration,
}

impl DomainSettings {
    /// From the configuration.
    pub fn new(config: &Config) -> Self {
        let mx_host =
            normalize_domain(&config.smtp.hostname).unwrap_or_else(|_| config.smtp.hostname.clone());
        let installation_names = [Some(mx_host.clone()), host_name(&config.http.base_url)];
        Self {
            installation_names: installation_names.into_iter().flatten().collect(),
            mx_host,
            interval: SignedDuration::from_secs(config.dns.interval_seconds.into()),
            pending: SignedDuration::from_hours(config.dns.pending_hours.into()),
        }
    }
}

/// The host name in an origin; `None` where it is an address.
fn host_name(origin: &str) -> Option<String> {
    let (_, authority) = origin.split_once("://")?;
    let host = if authority.starts_with('[') { return None } else { authority.split(':').next()? };
    if host.parse::<IpAddr>().is_ok() { None } else { normalize_domain(host).ok() }
}

/// Why a process has no key of verify tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeyError {
    /// Postgres does not answer, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness")]
    Randomness,
    /// The key that sealed it is missing.
    #[error(transparent)]
    Unopened(#[from] VerifyTokenKeyUnopened),
}

/// The installation's key of verify tokens, which `ring` (`secrets.keys`, not empty) opens. The process that needs it
/// first generates it.
///
/// # Errors
/// [`TokenKeyError`].
pub async fn verify_token_key(store: &Store, ring: &[MasterKey]) -> Result<VerifyTokenKey, TokenKeyError> {
    let sealer = VerifyTokenKeySealer::new(ring);
    let generated = sealer.generate().map_err(|_no_randomness| TokenKeyError::Randomness)?;
    let kept = store.ensure_verify_token_key(&generated).await?;
    Ok(sealer.open(&kept)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_mail_host_and_site_as_names_of_the_installation() {
        let mut config = Config::default();
        config.smtp.hostname = "MX.Example.net.".into();
        config.http.base_url = "https://Mail.Example.com:8443".into();
        let rules = DomainSettings::new(&config);
        assert_eq!(rules.mx_host, "mx.example.net");
        assert_eq!(rules.installation_names, ["mx.example.net", "mail.example.com"]);
        for address in ["http://127.0.0.1:8080", "http://[::1]:80"] {
            config.http.base_url = address.into();
            assert_eq!(DomainSettings::new(&config).installation_names, ["mx.example.net"], "{address}");
        }
    }
}
