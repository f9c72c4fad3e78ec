//! Every operation while Postgres is away, and while it is not what it should be.

use tempmail_tests::App;
use tempmail_tests::contract::operations;
use tempmail_tests::postgres::PostgresProxy;

use super::{Caller, made_up, whole};

/// Asks every operation that may fail so, all at once.
async fn every_one_fails(app: &App, caller: &Caller, status: u16, code: &str) {
    let asked = operations().iter().filter(|operation| operation.fails_with(code)).map(|operation| {
        let request = whole(app, operation, caller, &made_up(operation));
        async move { (operation, request.send().await) }
    });
    let answers = futures_util::future::join_all(asked).await;
    assert!(answers.len() > 10);
    for (operation, answer) in answers {
        assert_eq!(answer.error(status), code, "{}", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_postgres_everything_is_unavailable_for_a_moment() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    let caller = Caller::of(&app, &app.tenant).await;
    proxy.cut();
    every_one_fails(&app, &caller, 503, "unavailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_database_is_our_own_fault_and_nothing_of_it_is_told() {
    let app = App::start().await;
    let caller = Caller::of(&app, &app.tenant).await;
    sqlx::query("ALTER SCHEMA public RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    every_one_fails(&app, &caller, 500, "internal_error").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_always_the_same_needs_no_postgres() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    proxy.cut();
    for operation in operations().iter().filter(|operation| !operation.fails_with("unavailable")) {
        let answer = app.request(operation.method.clone(), &operation.path).send().await;
        // Who asks for no WebSocket is told so.
        let expected = if operation.id == "openWebSocket" { 426 } else { 200 };
        assert_eq!(answer.status, expected, "{}", operation.id);
    }
}
