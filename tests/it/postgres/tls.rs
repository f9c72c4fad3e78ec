//! The certificate of Postgres, with `sslmode=verify-full`.

use tempmail_tests::command::CommandOutput;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::{Database, PgBouncer};
use tempmail_tests::tls::TestCertificate;

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
async fn connects_where_the_certificate_is_trusted_and_names_the_host() {
    let (database, certificate) = (Database::create().await, TestCertificate::generate_for("localhost"));
    let server = PgBouncer::start(Some(&certificate)).await;
    assert_eq!(list_tenants(&database, &server, &certificate).await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_connect_where_the_certificate_is_not_trusted() {
    let (database, certificate) = (Database::create().await, TestCertificate::generate_for("localhost"));
    let server = PgBouncer::start(Some(&certificate)).await;
    let failure = list_tenants(&database, &server, &TestCertificate::generate_for("localhost")).await;
    assert!(failure.failure().contains("invalid peer certificate"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_connect_where_the_certificate_names_another_host() {
    let (database, certificate) = (Database::create().await, TestCertificate::generate_for("other.example"));
    let server = PgBouncer::start(Some(&certificate)).await;
    let failure = list_tenants(&database, &server, &certificate).await;
    assert!(failure.failure().contains("not valid for name"), "{failure:?}");
}
