//! PgBouncer before Postgres: roles behind it in session mode, with its default settings, why they do not work in another
//! mode, and its certificate with `sslmode=verify-full`.

use reqwest::Method;
use serde_json::json;
use tempmail_store::Store;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::{Database, PgBouncer, PoolMode};
use tempmail_tests::tls::TestCertificate;
use tempmail_tests::wait::eventually;
use tempmail_tests::{CommandOutput, Feed, Fleet, Receiver};

const ADDRESS: &str = "pooled@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn every_role_works_behind_pgbouncer() {
    let pooler = PgBouncer::start(None).await;
    let fleet = Fleet::builder().apis(1).ingests(1).receivers().postgres_through(pooler.port()).start().await;
    let receiver = Receiver::start().await;
    let webhook = json!({"url": receiver.url(), "events": ["email.received"]});
    let request = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&fleet.tenant.pro);
    request.json(&webhook).send().await.expect(201);
    fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    let follower = fleet.follow(0, &fleet.tenant.live, Feed::SseAddress(ADDRESS.to_owned()));
    follower.ready().await;

    fleet.deliver(0, ADDRESS, "over the pooler").await;
    eventually("the stream has the mail", || async {
        follower.receipts().iter().any(|receipt| receipt.subject == "over the pooler").then_some(())
    })
    .await;
    receiver.wait_for_requests(1).await;
    let trail = fleet.tempmail("audit --json").await.json();
    let created = trail.as_array().unwrap().iter().filter(|entry| entry["kind"] == "webhook");
    let actors: Vec<&str> = created.map(|entry| entry["actor"].as_str().unwrap()).collect();
    assert!(matches!(actors[..], [actor] if actor.starts_with("token ")), "{actors:?}");
}

/// Lists the tenants over TLS where the certificate authorities are those of a file.
async fn list_tenants(
    database: &Database,
    server: &PgBouncer,
    authorities: &TestCertificate,
) -> CommandOutput {
    let url = database.role_url_through(Role::Operator, Some(server.port()));
    let (url, _mode) = url.split_once('?').unwrap();
    let url = url.replace("127.0.0.1", "localhost");
    // As the chart sets them.
    let file = authorities.cert_path();
    let environment = [
        ("TEMPMAIL_POSTGRES__URL", url.as_str()),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", file.to_str().unwrap()),
    ];
    CommandOutput::run(&["tenant", "list"], &environment).await
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_a_pooler_has_to_pool_sessions() {
    let (database, pooler) =
        (Database::create().await, PgBouncer::start_pooling(PoolMode::Transactions).await);
    let url = database.role_url_through(Role::Api, Some(pooler.port()));
    let error = eventually("a statement meets another connection", || async {
        // Each has prepared statements of the same names.
        let stores = [(); 2].map(|()| Store::connect(&url, 1, "tempmail tests").unwrap());
        for store in &stores {
            if let Err(error) = store.stream_id().await {
                return Some(error);
            }
        }
        None
    })
    .await;
    assert!(!error.is_unavailable(), "{error}");
    assert!(
        error.to_string().contains("let it pool sessions (for PgBouncer `pool_mode = session`)"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connects_over_tls_only_where_the_certificate_is_trusted_and_names_the_host() {
    let (database, trusted) = (Database::create().await, TestCertificate::generate_for("localhost"));
    let server = PgBouncer::start(Some(&trusted)).await;
    assert_eq!(list_tenants(&database, &server, &trusted).await.code, Some(0));
    let failure = list_tenants(&database, &server, &TestCertificate::generate_for("localhost")).await;
    assert!(failure.failure().contains("invalid peer certificate"), "{failure:?}");

    let of_another_host = TestCertificate::generate_for("other.example");
    let server = PgBouncer::start(Some(&of_another_host)).await;
    let failure = list_tenants(&database, &server, &of_another_host).await;
    assert!(failure.failure().contains("not valid for name"), "{failure:?}");
}
