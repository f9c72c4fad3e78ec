//! The authority that issues receivers' certificates: one for each test program, which `webhooks.ca_file`
//! names.

use std::path::PathBuf;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::tls;

/// A certificate and its key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| {
    let mut params = CertificateParams::new(Vec::new()).expect("a certificate needs no name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key can be created");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate can be created");
    let directory = tempfile::tempdir().expect("a directory can be created");
    std::fs::write(directory.path().join("ca.pem"), issuer.pem()).expect("a file can be written");
    Authority { issuer, directory }
});

/// PEM file with the authority's certificate.
pub fn ca_file() -> PathBuf {
    AUTHORITY.directory.path().join("ca.pem")
}

impl Identity {
    /// A certificate of the authority for these names or addresses.
    ///
    /// # Panics
    /// One of them is neither.
    pub fn issued_for(names: &[&str]) -> Self {
        Self::issue(names, |_| {})
    }

    /// A certificate that expired long ago.
    ///
    /// # Panics
    /// As [`issued_for`](Self::issued_for).
    pub fn expired(names: &[&str]) -> Self {
        Self::issue(names, expire)
    }

    /// A certificate that no authority has issued.
    ///
    /// # Panics
    /// As [`issued_for`](Self::issued_for).
    pub fn self_signed(names: &[&str]) -> Self {
        let identity =
            rcgen::generate_simple_self_signed(owned(names)).expect("a certificate can be created");
        Self { certificate: identity.cert.der().clone(), key: key_of(&identity.signing_key) }
    }

    /// A certificate that no authority has issued, and that is marked as one of an authority, as `openssl req -x509` makes
    /// them.
    ///
    /// # Panics
    /// As [`issued_for`](Self::issued_for).
    pub fn self_signed_authority(names: &[&str]) -> Self {
        Self::sign_itself(names, |_| {})
    }

    /// The same, but expired long ago.
    ///
    /// # Panics
    /// As [`issued_for`](Self::issued_for).
    pub fn expired_authority(names: &[&str]) -> Self {
        Self::sign_itself(names, expire)
    }

    /// Its certificate as PEM.
    pub fn pem(&self) -> String {
        let body = STANDARD.encode(&self.certificate);
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    }

    /// Settings of a TLS server with this certificate.
    ///
    /// # Panics
    /// Certificate and key do not fit.
    pub fn server_config(&self) -> ServerConfig {
        tls::install_provider();
        let config = ServerConfig::builder().with_no_client_auth();
        let chain = vec![self.certificate.clone()];
        config.with_single_cert(chain, self.key.clone_key()).expect("the key belongs to the certificate")
    }

    fn sign_itself(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(owned(names)).expect("the names are valid");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        let key = KeyPair::generate().expect("a key can be created");
        let certificate = params.self_signed(&key).expect("a certificate can be created");
        Self { certificate: certificate.der().clone(), key: key_of(&key) }
    }

    fn issue(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(owned(names)).expect("the names are valid");
        change(&mut params);
        let key = KeyPair::generate().expect("a key can be created");
        let certificate = params.signed_by(&key, &AUTHORITY.issuer).expect("a certificate can be created");
        Self { certificate: certificate.der().clone(), key: key_of(&key) }
    }
}

fn expire(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn key_of(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(key.serialize_der()).expect("the key is valid")
}
