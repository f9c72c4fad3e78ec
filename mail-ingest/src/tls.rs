//! The certificate of STARTTLS, from PEM files.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempmail_runtime::config::SmtpTls;
use tokio_rustls::TlsAcceptor;

/// The acceptor of TLS handshakes; `None` if no certificate is configured.
///
/// # Errors
/// Only one file is configured, one can't be read, or certificate and key do not match.
pub(crate) fn acceptor(files: &SmtpTls) -> anyhow::Result<Option<TlsAcceptor>> {
    let (cert, key) = match (&files.cert, &files.key) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        _ => anyhow::bail!("smtp.tls.cert and smtp.tls.key must be set together"),
    };
    let chain = read_chain(cert).with_context(|| format!("smtp.tls.cert: {}", cert.display()))?;
    let key =
        PrivateKeyDer::from_pem_file(key).with_context(|| format!("smtp.tls.key: {}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("smtp.tls: certificate and key do not match")?;
    // Few senders resume a session, so a small cache is enough.
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(256);
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn read_chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>()?;
    anyhow::ensure!(!chain.is_empty(), "the file has no certificate");
    Ok(chain)
}
