//! Listeners on every address of the machine, of IPv6 and IPv4. The operating system gives a client of IPv4 a mapped
//! address there (`::ffff:127.0.0.1`); limits, lists of networks and records have its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Method;
use serde_json::json;
use tempmail_model::surface::DropInSurface;
use tempmail_tests::http::{Request, client};
use tempmail_tests::{App, SmtpClient, smtp};
use tokio::net::{TcpSocket, TcpStream};

const EVERY_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
const IPV4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const IPV6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A listener on every address, at one of loopback.
fn at(host: IpAddr, listener: SocketAddr) -> SocketAddr {
    assert!(listener.ip().is_unspecified(), "{listener}");
    SocketAddr::new(host, listener.port())
}

/// A session whose greeting is unread, from another address of this machine.
async fn connect_from(host: Ipv4Addr, listener: SocketAddr) -> SmtpClient {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((host, 0).into()).unwrap();
    SmtpClient::from_stream(socket.connect(listener).await.unwrap())
}

/// The raw data of a message that a client sent to a new address.
async fn received(app: &App, session: &mut SmtpClient, recipient: &str) -> String {
    session.expect_positive("EHLO client.example").await;
    let message = smtp::message("a@client.example", "Hello", "");
    assert_eq!(session.transact("a@client.example", &[recipient], &message).await.code, 250);
    let waited = app.get(&format!("/v1/inbox/{recipient}")).await.expect(200);
    let id = waited["emails"][0]["id"].as_str().unwrap();
    app.get(&format!("/v1/email/{id}/raw")).await.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_both_families_at_every_listener() {
    let app = App::builder()
        .config(|config| {
            config.http.listen = EVERY_ADDRESS;
            config.smtp.listen = EVERY_ADDRESS;
            config.compat.mailpit.listen = Some(EVERY_ADDRESS);
        })
        .start()
        .await;
    for listener in [app.http(), app.smtp(), app.drop_in(DropInSurface::Mailpit)] {
        for host in [IPV4, IPV6] {
            TcpStream::connect(at(host, listener)).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trusts_a_proxy_by_its_address_of_ipv4() {
    let app = App::builder()
        .config(|config| {
            config.http.listen = EVERY_ADDRESS;
            config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
            config.http.unlimited_networks.clear();
            config.limits.free_mailboxes_per_hour = 1;
        })
        .start()
        .await;
    let http_client = client();
    for (host, is_trusted) in [(IPV4, true), (IPV6, false)] {
        let url = format!("http://{}/api/domains", at(host, app.http()));
        let answer =
            Request::new(&http_client, Method::GET, &url).header("x-request-id", "edge-1").send().await;
        assert_eq!(answer.header("x-request-id") == "edge-1", is_trusted, "{host}");
    }

    // A proxy may write an address of IPv4 in either form: it is one client.
    let url = format!("http://{}/api/accounts", at(IPV4, app.http()));
    for (number, (forwarded, status)) in
        [("198.51.100.7", 201), ("::ffff:198.51.100.7", 429), ("::ffff:198.51.100.8", 201)]
            .into_iter()
            .enumerate()
    {
        let body = json!({ "address": format!("a{number}@inbox.localhost"), "password": "pass123" });
        let request = Request::new(&http_client, Method::POST, &url).header("x-forwarded-for", forwarded);
        assert_eq!(request.json(&body).send().await.status, status, "{forwarded}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_limits_a_sender_by_its_address_of_ipv4() {
    let app = App::builder()
        .config(|config| {
            config.smtp.listen = EVERY_ADDRESS;
            config.smtp.unlimited_networks = vec!["127.0.0.8/32".parse().unwrap()];
            config.smtp.connections_per_peer = 1;
            config.smtp.idle_seconds = 3_600;
        })
        .start()
        .await;
    let listener = at(IPV4, app.smtp());
    let mut first = SmtpClient::connect(listener).await;
    let raw = received(&app, &mut first, "one@inbox.localhost").await;
    assert!(raw.contains("[127.0.0.1]"), "{raw}");
    let mut second = SmtpClient::connect_without_greeting(listener).await.unwrap();
    assert_eq!(second.reply().await.status(), "421 4.7.0");
    // Mapped, all of IPv4 would be one /64, and no network of IPv4 would have them.
    let mut held = Vec::new();
    for host in [2, 8, 8] {
        let mut client = connect_from([127, 0, 0, host].into(), listener).await;
        assert_eq!(client.reply().await.code, 220, "127.0.0.{host}");
        held.push(client);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn knows_a_load_balancer_by_its_address_of_ipv4() {
    let app = App::builder()
        .config(|config| {
            config.smtp.listen = EVERY_ADDRESS;
            config.smtp.proxy_networks = vec!["127.0.0.0/8".parse().unwrap()];
        })
        .start()
        .await;
    let mut behind = SmtpClient::connect_without_greeting(at(IPV4, app.smtp())).await.unwrap();
    behind.send("PROXY TCP6 ::ffff:203.0.113.7 2001:db8::1 40000 25\r\n").await;
    assert_eq!(behind.reply().await.code, 220);
    let raw = received(&app, &mut behind, "behind@inbox.localhost").await;
    assert!(raw.contains("[203.0.113.7]"), "{raw}");

    let mut direct = SmtpClient::connect(at(IPV6, app.smtp())).await;
    let raw = received(&app, &mut direct, "direct@inbox.localhost").await;
    assert!(raw.contains("[IPv6:::1]"), "{raw}");
}
