//! Every operation while Postgres is down, and while the schema is broken.

use tempmail_tests::App;
use tempmail_tests::contract::operations;
use tempmail_tests::postgres::PostgresProxy;

use super::{Credentials, full_request, unknown_path};

/// Operations that ask the store nothing about an address or code that this installation did not make: `documents` and
/// `pro_api::session` have those.
const BY_SECRET: [&str; 2] = ["openDocument", "signInByLink"];

/// Sends a request to every operation that documents this error, and asserts it.
async fn assert_all_fail(app: &App, credentials: &Credentials, status: u16, code: &str) {
    let failing = operations()
        .iter()
        .filter(|operation| operation.fails_with(code) && !BY_SECRET.contains(&operation.id.as_str()));
    let requests = failing.map(|operation| {
        let request = full_request(app, operation, credentials, &unknown_path(operation));
        async move { (operation, request.send().await) }
    });
    let answers = futures_util::future::join_all(requests).await;
    assert!(answers.len() > 10);
    for (operation, answer) in answers {
        assert_eq!(answer.error(status), code, "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_unavailable_while_postgres_is_down() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    proxy.cut();
    assert_all_fail(&app, &credentials, 503, "unavailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_internal_error_without_details_when_the_schema_is_broken() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    sqlx::query("ALTER SCHEMA public RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    assert_all_fail(&app, &credentials, 500, "internal_error").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_static_routes_while_postgres_is_down() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    proxy.cut();
    for operation in operations().iter().filter(|operation| !operation.fails_with("unavailable")) {
        let answer = app.request(operation.method.clone(), &operation.path).send().await;
        // The request asks for no upgrade.
        let expected = if operation.id == "openWebSocket" { 426 } else { 200 };
        assert_eq!(answer.status, expected, "{}", operation.id);
    }
}
