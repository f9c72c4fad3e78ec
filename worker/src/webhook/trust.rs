//! Which certificates of receivers are trusted: those that an authority of the system or of `webhooks.ca_file` issued, and
//! those that are in that file themselves.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};

/// HTTP/2, and HTTP/1.1 for receivers without it.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// TLS as it is spoken with receivers. The authorities of the system are Mozilla's if it has none.
///
/// # Errors
/// `ca_file` can't be read, has no certificate, or one that is malformed.
pub(super) fn client_config(ca_file: Option<&Path>) -> anyhow::Result<ClientConfig> {
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs().certs;
    if system.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    } else {
        roots.add_parsable_certificates(system);
    }
    let listed = ca_file.map(read_certificates).transpose()?.unwrap_or_default();
    for certificate in &listed {
        roots.add(certificate.clone()).context("`webhooks.ca_file` has a malformed certificate")?;
    }
    let by_authority = WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
    let verifier = ReceiverVerifier { by_authority: by_authority.build()?, listed };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

fn read_certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let named = || format!("`webhooks.ca_file` {}", file.display());
    let pem = std::fs::read(file).with_context(named)?;
    let certificates =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().with_context(named)?;
    ensure!(!certificates.is_empty(), "{} has no certificate", named());
    Ok(certificates)
}

/// Verifies the certificates of receivers.
#[derive(Debug)]
struct ReceiverVerifier {
    by_authority: Arc<WebPkiServerVerifier>,
    /// The certificates of `webhooks.ca_file`.
    listed: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for ReceiverVerifier {
    /// A receiver's certificate must not be one of an authority (RFC 5280, 4.2.1.9), as one that signed itself mostly says
    /// that it is. It is trusted all the same if it is listed, for its names and its time.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.by_authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if is_of_authority(&error) => {
                if !self.listed.contains(end_entity) {
                    return Err(CertificateError::UnknownIssuer.into());
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            // An issuer of the name of a trusted authority, with another key.
            Err(rustls::Error::InvalidCertificate(CertificateError::BadSignature)) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Whether a certificate was refused only because it is marked as one of an authority, which is judged after its time.
fn is_of_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) = error else {
        return false;
    };
    matches!(cause.downcast_ref::<webpki::Error>(), Some(webpki::Error::CaUsedAsEndEntity))
}
