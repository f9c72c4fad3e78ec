//! `/v1`

mod authentication;
mod config {
    mod get;
}
mod cursor;
mod domain {
    mod get;
}
mod domains;
mod email;
mod emails {
    mod get;
}
mod inbox {
    mod delete;
    mod get;
}
mod me {
    mod get;
}
mod owner;
mod sse;
mod tokens;
mod wait;
mod wait_slots;

use reqwest::Method;
use serde_json::Value;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_tests::{App, rows};

/// The subjects of a list of summaries.
fn subjects(emails: &Value) -> Vec<&str> {
    emails
        .as_array()
        .expect("a list")
        .iter()
        .map(|email| email["subject"].as_str().expect("a text"))
        .collect()
}

/// Asserts that a route accepts no credential but a valid live token.
async fn assert_accepts_only_live_tokens(method: Method, path: &str) {
    let app = App::start().await;
    let ask = async |token: &str| app.request(method.clone(), path).live(token).send().await;
    let bare = app.request(method.clone(), path).send().await;
    bare.assert_v1_error(401, "authentication_required");
    assert!(!bare.header("www-authenticate").is_empty());
    let unknown = PlainToken::generate(TokenKind::Live).unwrap();
    let revoked = app.token(&app.tenant, TokenKind::Live).await;
    rows::revoke_token(&app.pool, &revoked, app.clock.now()).await;
    for token in ["x", unknown.expose(), &app.tenant.pro, &revoked] {
        ask(token).await.assert_v1_error(401, "invalid_token");
    }
    let expired = app.token(&app.tenant, TokenKind::Live).await;
    rows::expire_token(&app.pool, &expired, app.clock.now()).await;
    ask(&expired).await.assert_v1_error(440, "session_expired");
    let admitted = ask(&app.tenant.live).await;
    assert!(![401, 440].contains(&admitted.status), "{}", admitted.text());
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    ask(&app.tenant.live).await.assert_v1_error(403, "account_disabled");
}
