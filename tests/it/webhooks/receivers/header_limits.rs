//! Limits of the header section of a response: the same over both versions of HTTP.

use std::sync::Arc;

use axum::http::{HeaderName, Response};
use tempmail_tests::Receiver;
use tempmail_tests::receiver::{Identity, Reaction};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{app, receiver_with};
use crate::webhooks::{first_attempts, outcome};

/// Fields of a header section.
const FIELDS_MAX: usize = 1_000;
/// Its size, of which each field takes 32 beside its name and value.
const SIZE_MAX: usize = 256 << 10;

/// A header section: how many fields, and octets of each value.
#[derive(Debug, Clone, Copy)]
struct Section {
    fields: usize,
    value: usize,
}

impl Section {
    fn each(self) -> impl Iterator<Item = (String, String)> {
        (0..self.fields).map(move |number| (format!("x-{number:03}"), "v".repeat(self.value)))
    }
}

/// A receiver that speaks HTTP/1.1.
async fn over_http1(section: Section) -> Receiver {
    let fields: String = section.each().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    receiver_with(Reaction::RawBytes(format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))).await
}

/// The URL of a receiver that speaks HTTP/2.
async fn over_http2(section: Section) -> String {
    let mut config = Identity::issued_for(&["localhost"]).server_config();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    let mut response = Response::new(());
                    for (name, value) in section.each() {
                        let name = HeaderName::try_from(name).unwrap();
                        response.headers_mut().append(name, value.parse().unwrap());
                    }
                    let _ = respond.send_response(response, true);
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_header_sections_up_to_the_limits_and_names_what_is_beyond_over_both_versions() {
    let (accepted, refused) = ((200, None), (0, Some("response_header_too_large")));
    let name = 5 + 32;
    let sections = [
        (Section { fields: 150, value: 1 }, accepted),
        (Section { fields: FIELDS_MAX, value: 1 }, accepted),
        (Section { fields: FIELDS_MAX + 1, value: 1 }, refused),
        (Section { fields: 1, value: 20 << 10 }, accepted),
        (Section { fields: 16, value: SIZE_MAX / 16 - name }, accepted),
        (Section { fields: 16, value: SIZE_MAX / 16 - name + 1 }, refused),
        (Section { fields: 1, value: 1 << 20 }, refused),
    ];
    let (mut receivers, mut urls) = (Vec::new(), Vec::new());
    for (section, _) in sections {
        let receiver = over_http1(section).await;
        urls.extend([receiver.url(), over_http2(section).await]);
        receivers.push(receiver);
    }
    let app = app().await;
    let attempts = first_attempts(&app, &urls).await;
    for (pair, (section, expected)) in attempts.chunks(2).zip(sections) {
        for (attempt, version) in pair.iter().zip(["HTTP/1.1", "HTTP/2"]) {
            assert_eq!(outcome(attempt), expected, "{section:?} over {version}: {attempt}");
        }
    }
}
