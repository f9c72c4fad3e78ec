//! The environment of a worker: proxies, certificate authorities, and file descriptors.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_runtime::file_watch;
use tempmail_tests::dns::RebindingServer;
use tempmail_tests::receiver::{Identity, Reaction, ca_file};
use tempmail_tests::rows::{TenantLimit, set_limit};
use tempmail_tests::tls::TestCertificate;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, Receiver};
use uuid::Uuid;

use crate::pro_api::id_of;
use crate::webhooks::{create_webhook, first_attempts, list_attempts, outcome};

async fn create_webhook_in(fleet: &Fleet, url: &str) -> Uuid {
    let body = json!({ "url": url, "events": ["email.received"] });
    let request = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&fleet.tenant.pro);
    id_of(&request.json(&body).send().await.expect(201))
}

/// The listed attempts, newest first.
async fn list_attempts_in(fleet: &Fleet, webhook: Uuid) -> Vec<Value> {
    let path = format!("/pro/api/webhooks/{webhook}/deliveries");
    let listed = fleet.request(0, Method::GET, &path).bearer(&fleet.tenant.pro).send().await.expect(200);
    listed["deliveries"].as_array().unwrap().clone()
}

async fn first_attempt(fleet: &Fleet, url: &str) -> Value {
    let webhook = create_webhook_in(fleet, url).await;
    fleet.mailbox(Some(&fleet.tenant.pro), "box@inbox.localhost").await;
    fleet.deliver(0, "box@inbox.localhost", "Hello").await;
    eventually("an attempt is recorded", || async { list_attempts_in(fleet, webhook).await.pop() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_use_a_proxy_of_the_environment() {
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let mut builder = Fleet::builder().apis(1).ingests(1).receivers();
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        builder = builder.env(name, &format!("http://{}", proxy.local_addr().unwrap()));
    }
    let (fleet, receiver) = (builder.start().await, Receiver::start().await);
    let attempt = first_attempt(&fleet, &receiver.url()).await;
    assert_eq!(outcome(&attempt), (204, None), "{attempt}");
    assert!(proxy.accept().is_err(), "the proxy got no connection");
    assert_eq!(receiver.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn trusts_the_configured_authority_on_a_machine_without_any() {
    let empty = tempfile::tempdir().unwrap();
    let file = empty.path().join("none.pem");
    std::fs::write(&file, "").unwrap();
    let receiver = Receiver::start().await;
    for (is_configured, expected) in [(true, (204, None)), (false, (0, Some("tls_failure")))] {
        let builder = Fleet::builder().apis(1).ingests(1).receivers().config(|config| {
            config.webhooks.ca_file = config.webhooks.ca_file.take().filter(|_| is_configured);
        });
        let builder = builder.env("SSL_CERT_FILE", file.to_str().unwrap());
        let fleet = builder.env("SSL_CERT_DIR", empty.path().to_str().unwrap()).start().await;
        let attempt = first_attempt(&fleet, &receiver.url()).await;
        assert_eq!(outcome(&attempt), expected, "{attempt}");
    }
}

/// The receiver is not at fault: its webhook does not fail.
#[tokio::test(flavor = "multi_thread")]
async fn makes_no_attempt_without_a_file_descriptor() {
    let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
    let dns = RebindingServer::start(move |_, _| vec![loopback]).await;
    let servers = vec![dns.address()];
    let builder = Fleet::builder().apis(1).ingests(1).receivers();
    let fleet = builder.config(|config| config.dns.servers = servers).start().await;
    set_limit(&fleet.pool, fleet.tenant.id, TenantLimit::Webhooks, 2).await;
    // `localhost` is resolved without a file descriptor, the other name needs one.
    let names = ["localhost", "receiver.guarded.example"];
    let receiver = Receiver::start_at((loopback, 0).into(), &Identity::issued_for(&names)).await;
    receiver.react_with(Reaction::StatusWithHeader(204, "connection", "close".to_owned()));
    let webhooks = [
        create_webhook_in(&fleet, &receiver.url_for_host(names[0])).await,
        create_webhook_in(&fleet, &receiver.url_for_host(names[1])).await,
    ];
    fleet.mailbox(Some(&fleet.tenant.pro), "box@inbox.localhost").await;
    fleet.deliver(0, "box@inbox.localhost", "First").await;
    receiver.wait_for_requests(2).await;
    for webhook in webhooks {
        eventually("the first attempt is recorded", || async {
            list_attempts_in(&fleet, webhook).await.pop()
        })
        .await;
    }
    let before = fleet.worker(0).set_open_file_limit(3);
    fleet.deliver(0, "box@inbox.localhost", "Second").await;
    let postponed = "SELECT count(*) FROM webhook WHERE due_at > '-infinity' AND lease_holder IS NULL AND failure_count = 0";
    eventually("both webhooks are postponed", || async {
        let count: i64 = sqlx::query_scalar(postponed).fetch_one(&fleet.pool).await.unwrap();
        (count == 2).then_some(())
    })
    .await;
    assert_eq!(receiver.request_count(), 2);
    fleet.worker(0).set_open_file_limit(before);
    receiver.wait_for_requests(4).await;
    for webhook in webhooks {
        let attempts = eventually("the second attempt is recorded", || async {
            let attempts = list_attempts_in(&fleet, webhook).await;
            (attempts.len() == 2).then_some(attempts)
        })
        .await;
        for attempt in attempts {
            assert_eq!((outcome(&attempt), &attempt["attempt"]), ((204, None), &json!(1)), "{attempt}");
        }
    }
    assert!(fleet.worker(0).metric("tempmail_webhook_attempts_postponed_total").await >= 2.0);
}

#[tokio::test]
async fn trusts_the_authorities_of_a_renewed_file() {
    let other = TestCertificate::generate();
    let file = other.cert_path();
    let app = App::builder().receivers().config(|config| config.webhooks.ca_file = Some(file.clone()));
    let app = app.start().await;
    let receiver = Receiver::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let first_outcome = || async {
        let webhook = create_webhook(&app, &receiver.url()).await;
        app.deliver("box@inbox.localhost", "Hello", "").await;
        let attempt = eventually("an attempt", || async { list_attempts(&app, &webhook).await.pop() }).await;
        // A tenant may have one.
        let path = format!("/pro/api/webhooks/{}", webhook.id);
        app.request(Method::DELETE, &path).bearer(&app.tenant.pro).send().await.expect(204);
        outcome(&attempt).0
    };
    assert_eq!(first_outcome().await, 0);
    std::fs::copy(ca_file(), &file).unwrap();
    app.jump_until("the renewed authority is trusted", file_watch::PERIOD, || async {
        (first_outcome().await == 204).then_some(())
    })
    .await;
}

/// As `openssl req -x509` makes them, certificates that sign themselves are marked as those of an authority.
#[tokio::test(flavor = "multi_thread")]
async fn trusts_a_self_signed_certificate_of_the_file_for_its_names_until_it_expires() {
    let listed = [
        (Identity::self_signed_authority(&["localhost"]), None),
        (Identity::self_signed(&["localhost"]), None),
        (Identity::self_signed_authority(&["other.example"]), Some("name_mismatch")),
        (Identity::expired_authority(&["localhost"]), Some("expired")),
    ];
    let unlisted = Identity::self_signed_authority(&["localhost"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("receivers.pem");
    let pem: String = listed.iter().map(|(identity, _)| identity.pem()).collect();
    std::fs::write(&file, pem).unwrap();
    let app = App::builder().receivers().config(|config| config.webhooks.ca_file = Some(file));
    let app = app.start().await;
    let (mut receivers, mut details) = (Vec::new(), Vec::new());
    for (identity, detail) in listed.into_iter().chain([(unlisted, Some("unknown_issuer"))]) {
        receivers.push(Receiver::start_at((Ipv4Addr::LOCALHOST, 0).into(), &identity).await);
        details.push(detail);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    for (detail, attempt) in details.into_iter().zip(first_attempts(&app, &urls).await) {
        let expected = if detail.is_none() { (204, None) } else { (0, Some("tls_failure")) };
        assert_eq!((outcome(&attempt), attempt["detail"].as_str()), (expected, detail), "{attempt}");
    }
}
