//! `up --sink`: all mail is caught, whoever it is for.

use std::net::IpAddr;

use anyhow::Context as _;
use rcgen::generate_simple_self_signed;
use tempmail_model::surface::DropInSurface;
use tempmail_runtime::config::{Config, Smtp};

use crate::command::data_directory::{self, DataDirectory};

/// The system domain of addresses that are made in a sink: one that validators take, which refuse names under
/// `localhost` and `test` (RFC 6761), and that nobody owns.
pub(super) const DOMAIN: &str = "sink.example.com";

/// Checks that no other machine reaches the listeners, unless that is forced.
///
/// # Errors
/// The listener that others reach.
pub(super) fn check_listeners(config: &Config, force: bool) -> anyhow::Result<()> {
    let of_surfaces = DropInSurface::ALL.into_iter().filter_map(|surface| {
        let address = config.compat.of(surface).listen?;
        Some((format!("compat.{}.listen", surface.as_str()), address))
    });
    let own = [("http.listen", config.http.listen), ("smtp.listen", config.smtp.listen)];
    let own = own.map(|(setting, address)| (setting.to_owned(), address));
    for (setting, address) in own.into_iter().chain(of_surfaces) {
        anyhow::ensure!(
            force || is_loopback(address.ip()),
            "{setting} is {address}: a sink takes mail from everyone who reaches it, so it listens on loopback; \
             add --force to open it"
        );
    }
    Ok(())
}

/// Sets the certificate of `--starttls`, unless the settings have one: that of the data directory, which is made at the first
/// start, so that a client is told to trust it once.
///
/// # Errors
/// The files can't be written.
pub(super) fn set_certificate(smtp: &mut Smtp, directory: &DataDirectory) -> anyhow::Result<()> {
    if smtp.tls.cert.is_some() || smtp.tls.key.is_some() {
        return Ok(());
    }
    let [cert, key] = ["smtp-cert.pem", "smtp-key.pem"].map(|file| directory.path().join(file));
    if !(cert.exists() && key.exists()) {
        let names = ["localhost", "127.0.0.1", "::1", smtp.hostname.as_str(), DOMAIN];
        let made =
            generate_simple_self_signed(names.map(str::to_owned)).context("the certificate of STARTTLS")?;
        data_directory::write_private(&key, &made.signing_key.serialize_pem())?;
        data_directory::write_private(&cert, &made.cert.pem())?;
    }
    (smtp.tls.cert, smtp.tls.key) = (Some(cert), Some(key));
    Ok(())
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listens_on_loopback_unless_forced() {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:8080".parse().unwrap();
        config.smtp.listen = "[::1]:2525".parse().unwrap();
        assert!(check_listeners(&config, false).is_ok());
        config.smtp.listen = "0.0.0.0:2525".parse().unwrap();
        let refused = check_listeners(&config, false).unwrap_err().to_string();
        assert!(refused.starts_with("smtp.listen is 0.0.0.0:2525"), "{refused}");
        assert!(check_listeners(&config, true).is_ok());
        config.smtp.listen = "127.0.0.1:2525".parse().unwrap();
        config.compat.mailpit.listen = Some("0.0.0.0:8025".parse().unwrap());
        let refused = check_listeners(&config, false).unwrap_err().to_string();
        assert!(refused.starts_with("compat.mailpit.listen is 0.0.0.0:8025"), "{refused}");
    }
}
