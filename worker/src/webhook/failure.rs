//! Why a request failed, in the words of the interface, and whether this process or its system is out of file
//! descriptors.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rustls::CertificateError;

use super::resolver::ResolveError;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestFailure {
    /// One of the interface's words.
    pub(super) error: &'static str,
    /// Why TLS failed.
    pub(super) detail: Option<&'static str>,
}

impl RequestFailure {
    /// The destination is not allowed.
    pub(super) const BLOCKED: Self = Self::new("blocked_address");
    /// Another status than 2xx.
    pub(super) const HTTP_STATUS: Self = Self::new("http_status");
    /// The header section of the response is above the limits.
    pub(super) const HEADER_TOO_LARGE: Self = Self::new("response_header_too_large");

    const fn new(error: &'static str) -> Self {
        Self { error, detail: None }
    }

    /// Why there is no response.
    ///
    /// # Errors
    /// [`NoFileDescriptor`]: no request was sent.
    pub(super) fn of(error: &reqwest::Error) -> Result<Self, NoFileDescriptor> {
        if error.is_timeout() {
            return Ok(Self::new("timeout"));
        }
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = source {
            if let Some(error) = cause.downcast_ref::<ResolveError>() {
                return match error {
                    ResolveError::Blocked => Ok(Self::BLOCKED),
                    ResolveError::NoAddress => Ok(Self::new("dns_failure")),
                    ResolveError::NoFileDescriptor => Err(NoFileDescriptor),
                };
            }
            if let Some(error) = cause.downcast_ref::<rustls::Error>() {
                return Ok(Self { error: "tls_failure", detail: Some(tls_detail(error)) });
            }
            if is_header_too_large(cause) {
                return Ok(Self::HEADER_TOO_LARGE);
            }
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                if is_exhausted(io) {
                    return Err(NoFileDescriptor);
                }
                if io.kind() == io::ErrorKind::ConnectionRefused {
                    return Ok(Self::new("connection_refused"));
                }
                // `source` of an I/O error skips the error that it wraps.
                if let Some(inner) = io.get_ref() {
                    source = Some(inner);
                    continue;
                }
            }
            source = cause.source();
        }
        Ok(Self::new("connection_failed"))
    }
}

/// Whether the HTTP library has refused the header section of a response. Over HTTP/2 it ends the stream, or the
/// connection where the section is far larger.
fn is_header_too_large(cause: &(dyn Error + 'static)) -> bool {
    use h2::Reason;
    const REASONS: [Reason; 3] =
        [Reason::REFUSED_STREAM, Reason::COMPRESSION_ERROR, Reason::ENHANCE_YOUR_CALM];
    cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large)
        || cause.downcast_ref::<h2::Error>().is_some_and(|error| {
            error.is_library() && error.reason().is_some_and(|reason| REASONS.contains(&reason))
        })
}

/// What the certificate lacks, or `handshake` where TLS failed for another reason.
fn tls_detail(error: &rustls::Error) -> &'static str {
    let rustls::Error::InvalidCertificate(error) = error else { return "handshake" };
    match error {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => "expired",
        CertificateError::UnknownIssuer => "unknown_issuer",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "name_mismatch"
        }
        _ => "handshake",
    }
}

/// `ENFILE` and `EMFILE` of Linux: the limit of the system, and that of the process.
const EXHAUSTED: [i32; 2] = [23, 24];

/// No connection could be opened, for lack of a file descriptor. The receiver is not at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoFileDescriptor;

/// Whether an operation failed for lack of a file descriptor.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

/// Whether no file can be opened now.
pub(super) fn no_file_descriptor_left() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| is_exhausted(&error))
}
