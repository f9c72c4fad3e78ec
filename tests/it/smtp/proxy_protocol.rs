//! The PROXY protocol: a load balancer carries the address of its client.

use tempmail_tests::{App, SmtpClient, smtp};

/// Where the load balancer connects from in these tests.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
/// The signature of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Tempmail behind a load balancer on loopback, with at most one connection per peer.
async fn app_behind_a_load_balancer() -> App {
    App::builder()
        .config(|config| {
            config.smtp.proxy_networks = LOOPBACK.map(|network| network.parse().unwrap()).into();
            config.smtp.unlimited_networks = vec!["203.0.113.0/24".parse().unwrap()];
            config.smtp.connections_per_peer = 1;
            config.smtp.idle_seconds = 3_600;
        })
        .start()
        .await
}

/// A connection of the load balancer that begins with `header`.
async fn connect(app: &App, header: impl AsRef<[u8]>) -> SmtpClient {
    let mut client = SmtpClient::connect_without_greeting(app.smtp()).await.unwrap();
    client.send(header).await;
    client
}

fn v1(client: &str) -> String {
    format!("PROXY TCP4 {client} 10.0.0.1 40000 25\r\n")
}

/// A header of version 2 of an IPv4 client.
fn v2(client: [u8; 4]) -> Vec<u8> {
    [SIGNATURE, &[0x21, 0x11, 0, 12], &client, &[10, 0, 0, 1, 0x9c, 0x40, 0, 25]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_the_client_of_either_version_as_the_peer() {
    let app = app_behind_a_load_balancer().await;
    for (header, address) in
        [(v1("203.0.113.7").into_bytes(), "203.0.113.7"), (v2([203, 0, 113, 8]), "203.0.113.8")]
    {
        let recipient = format!("{}@inbox.localhost", address.replace('.', "-"));
        let mut client = connect(&app, header).await;
        assert_eq!(client.reply().await.code, 220);
        client.expect_positive("EHLO client.example").await;
        let message = smtp::message("a@client.example", "carried", "");
        assert_eq!(client.transact("a@client.example", &[&recipient], &message).await.code, 250);

        let waited = app.get(&format!("/v1/inbox/{recipient}")).await.expect(200);
        let id = waited["emails"][0]["id"].as_str().unwrap();
        let raw = app.get(&format!("/v1/email/{id}/raw")).await;
        assert_eq!(raw.status, 200);
        let received = raw.text();
        assert!(received.contains(&format!("[{address}]")), "{received}");
        assert!(!received.contains("127.0.0.1"), "{received}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_client_and_never_exempts_it() {
    let app = app_behind_a_load_balancer().await;
    let mut first = connect(&app, v1("203.0.113.7")).await;
    assert_eq!(first.reply().await.code, 220);
    let mut second = connect(&app, v1("203.0.113.7")).await;
    assert_eq!(second.reply().await.status(), "421 4.7.0");
    assert_eq!(second.try_reply().await, None);
    let mut other = connect(&app, v1("203.0.113.8")).await;
    assert_eq!(other.reply().await.code, 220);
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_a_connection_without_a_valid_header() {
    let app = app_behind_a_load_balancer().await;
    for header in [
        "EHLO client.example\r\n".to_owned(),
        "PROXY TCP4 203.0.113.7 10.0.0.1\r\n".to_owned(),
        v1("127.0.0.1"),
        v1("0.0.0.0"),
        v1("224.0.0.1"),
        format!("PROXY UNKNOWN {}\r\n", "x".repeat(107)),
    ] {
        let mut client = connect(&app, &header).await;
        assert_eq!(client.try_reply().await, None, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lets_a_health_check_only_quit() {
    let app = app_behind_a_load_balancer().await;
    let local = [SIGNATURE, &[0x20, 0, 0, 0]].concat();
    for header in [&b"PROXY UNKNOWN\r\n"[..], &local] {
        let mut quits = connect(&app, header).await;
        assert_eq!(quits.reply().await.code, 220);
        assert_eq!(quits.command("QUIT").await.status(), "221 2.0.0");
        assert_eq!(quits.try_reply().await, None);
        let mut sends = connect(&app, header).await;
        assert_eq!(sends.reply().await.code, 220);
        assert_eq!(sends.command("EHLO client.example").await.status(), "503 5.5.1");
        assert_eq!(sends.try_reply().await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_a_connection_with_a_header_from_elsewhere() {
    let app = App::start().await;
    let mut client = connect(&app, v1("203.0.113.7")).await;
    assert_eq!(client.reply().await.code, 220);
    assert_eq!(client.reply().await.status(), "554 5.7.1");
    assert_eq!(client.try_reply().await, None);

    let mut client = connect(&app, v2([203, 0, 113, 7])).await;
    assert_eq!(client.reply().await.code, 220);
    let mut last = None;
    while let Some(reply) = client.try_reply().await {
        last = Some(reply.status());
    }
    assert_eq!(last.as_deref(), Some("554 5.7.1"));
}
