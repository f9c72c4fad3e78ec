//! `POST /pro/api/session/link`: the link that `up` prints.

use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::{App, Response, rows};

const OWN: (&str, &str) = ("origin", "http://127.0.0.1:8080");

async fn sign_in(app: &App, code: &str, origin: (&str, &str)) -> Response {
    let request = app.request(Method::POST, "/pro/api/session/link").json(&json!({ "code": code }));
    request.header(origin.0, origin.1).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_in_once() {
    let app = App::start().await;
    for wrong in ["", "0", &"0".repeat(64), &app.tenant.pro, &app.sign_in_code[1..]] {
        sign_in(&app, wrong, OWN).await.assert_api_error(401, "invalid_token");
    }
    let answers = futures_util::future::join_all((0..8).map(|_| sign_in(&app, &app.sign_in_code, OWN))).await;
    let (signed_in, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 204);
    assert_eq!(signed_in.len(), 1);
    for answer in refused {
        answer.assert_api_error(401, "invalid_token");
    }
    let cookie = signed_in[0].header("set-cookie").split(';').next().unwrap().to_owned();
    let request = app.request(Method::GET, "/pro/api/session").header("cookie", cookie).header(OWN.0, OWN.1);
    assert_eq!(request.send().await.expect(200)["tenant"], app.tenant.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn is_for_own_pages_only_and_stays_usable() {
    let app = App::start().await;
    let foreign = sign_in(&app, &app.sign_in_code, ("origin", "https://evil.example")).await;
    foreign.assert_api_error(403, "origin_not_allowed");
    assert_eq!(sign_in(&app, &app.sign_in_code, OWN).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn leads_nowhere_without_its_token() {
    let app = App::start().await;
    rows::revoke_token(&app.pool, &app.tenant.pro, app.clock.now()).await;
    sign_in(&app, &app.sign_in_code, OWN).await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn stays_usable_while_the_store_fails() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    proxy.cut();
    assert_eq!(sign_in(&app, &app.sign_in_code, OWN).await.error(503), "unavailable");

    let app = App::start().await;
    sqlx::query("ALTER SCHEMA public RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    assert_eq!(sign_in(&app, &app.sign_in_code, OWN).await.error(500), "internal_error");
    sqlx::query("ALTER SCHEMA elsewhere RENAME TO public").execute(&app.pool).await.unwrap();
    let signed_in = tempmail_tests::wait::eventually("the store answers", || async {
        Some(sign_in(&app, &app.sign_in_code, OWN).await).filter(|answer| answer.status < 500)
    });
    assert_eq!(signed_in.await.status, 204);
}
