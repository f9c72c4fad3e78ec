//! The certificate of STARTTLS, from PEM files that are read again when they are renewed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempmail_runtime::config::SmtpTls;
use tempmail_runtime::file_watch::FileWatch;
use tokio_rustls::TlsAcceptor;

/// TLS as the settings `smtp.tls.*` have it.
#[derive(Debug)]
pub(crate) struct Tls {
    certificate: Arc<RenewedCertificate>,
    watch: FileWatch,
    config: Arc<ServerConfig>,
}

/// The certificate of new handshakes.
#[derive(Debug)]
struct RenewedCertificate {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Tls {
    /// Reads the certificate; `None` if none is configured.
    ///
    /// # Errors
    /// Only one file is configured, one can't be read, or certificate and key do not match.
    pub(crate) fn from_config(files: &SmtpTls) -> anyhow::Result<Option<Self>> {
        let (cert, key) = match (&files.cert, &files.key) {
            (None, None) => return Ok(None),
            (Some(cert), Some(key)) => (cert.clone(), key.clone()),
            _ => anyhow::bail!("smtp.tls.cert and smtp.tls.key must be set together"),
        };
        let watch = FileWatch::new(vec![cert.clone(), key.clone()]);
        let current = RwLock::new(Arc::new(read(&cert, &key)?));
        let certificate = Arc::new(RenewedCertificate { cert, key, current });
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        // Few senders resume a session, so a small cache is enough.
        config.session_storage = rustls::server::ServerSessionMemoryCache::new(256);
        Ok(Some(Self { certificate, watch, config: Arc::new(config) }))
    }

    /// The acceptor of handshakes.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Uses the files for new handshakes whenever they change. While they can't be used, the former certificate
    /// stays.
    pub(crate) async fn follow_renewals(mut self) {
        loop {
            self.watch.changed().await;
            match self.certificate.read_again() {
                Ok(()) => tracing::info!("the renewed certificate is used for STARTTLS"),
                Err(error) => {
                    metrics::counter!("tempmail_smtp_tls_renewals_failed_total").increment(1);
                    tracing::error!(
                        error = format!("{error:#}"),
                        "the renewed certificate can't be used: STARTTLS keeps the former one"
                    );
                }
            }
        }
    }
}

impl RenewedCertificate {
    fn read_again(&self) -> anyhow::Result<()> {
        let renewed = Arc::new(read(&self.cert, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }
}

impl ResolvesServerCert for RenewedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(cert: &Path, key: &Path) -> anyhow::Result<CertifiedKey> {
    let chain = read_chain(cert).with_context(|| format!("smtp.tls.cert: {}", cert.display()))?;
    let key =
        PrivateKeyDer::from_pem_file(key).with_context(|| format!("smtp.tls.key: {}", key.display()))?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
        .context("smtp.tls: certificate and key do not match")
}

fn read_chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>()?;
    anyhow::ensure!(!chain.is_empty(), "the file has no certificate");
    Ok(chain)
}
