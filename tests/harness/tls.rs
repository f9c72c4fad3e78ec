//! A self-signed certificate of a test, and a client that trusts only it.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;

use crate::smtp::SmtpClient;

/// The name in the certificate.
pub const NAME: &str = "mx.inbox.localhost";

/// Installs aws-lc-rs as the crypto provider of the process.
pub fn install_provider() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}

/// A certificate, as files.
#[derive(Debug)]
pub struct TestCertificate {
    directory: tempfile::TempDir,
    der: rustls_pki_types::CertificateDer<'static>,
}

impl TestCertificate {
    /// A new certificate for [`NAME`].
    ///
    /// # Panics
    /// It can't be generated or written.
    pub fn generate() -> Self {
        Self::generate_for(NAME)
    }

    /// A new certificate for a host name.
    ///
    /// # Panics
    /// It can't be generated or written.
    pub fn generate_for(name: &str) -> Self {
        install_provider();
        let generated =
            rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate can be made");
        let directory = tempfile::tempdir().expect("a directory can be made");
        std::fs::write(directory.path().join("cert.pem"), generated.cert.pem())
            .expect("a file can be written");
        std::fs::write(directory.path().join("key.pem"), generated.signing_key.serialize_pem())
            .expect("a file can be written");
        Self { directory, der: generated.cert.der().clone() }
    }

    /// PEM file of the certificate.
    pub fn cert_path(&self) -> PathBuf {
        self.directory.path().join("cert.pem")
    }

    /// PEM file of the key.
    pub fn key_path(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }

    /// Replaces the files by those of another certificate.
    ///
    /// # Panics
    /// They can't be copied.
    pub fn renew_with(&self, renewed: &Self) {
        std::fs::copy(renewed.cert_path(), self.cert_path()).expect("a file can be copied");
        std::fs::copy(renewed.key_path(), self.key_path()).expect("a file can be copied");
    }

    /// Upgrades a session to TLS, after the server's `220` to `STARTTLS`.
    ///
    /// # Panics
    /// The handshake fails.
    pub async fn start_tls(&self, client: SmtpClient) -> SmtpClient {
        self.try_start_tls(client).await.expect("the TLS handshake succeeds")
    }

    /// As [`Self::start_tls`]; `None` if the server has another certificate.
    pub async fn try_start_tls(&self, client: SmtpClient) -> Option<SmtpClient> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("our own certificate is one");
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(NAME).expect("the name is a host name");
        let stream = TlsConnector::from(Arc::new(config)).connect(name, client.into_stream()).await.ok()?;
        Some(SmtpClient::from_stream(stream))
    }
}
