//! Every operation that requires a credential.

use jiff::SignedDuration;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::contract::{Operation, operations};
use tempmail_tests::rows;
use tempmail_tests::{App, Response};

use super::{Credentials, bare_request, full_request, unknown_path};

fn guarded() -> impl Iterator<Item = &'static Operation> {
    operations().iter().filter(|operation| !operation.credentials.is_empty())
}

fn assert_error(operation: &Operation, answer: &Response, status: u16, code: &str) {
    assert_eq!(answer.error(status), code, "{}", operation.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_missing_credential_with_authentication_required() {
    let app = App::start().await;
    for operation in guarded().filter(|operation| !operation.is_open) {
        let answer = bare_request(&app, operation, &unknown_path(operation)).send().await;
        assert_error(operation, &answer, 401, "authentication_required");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_malformed_unknown_and_wrong_kind_credentials_with_invalid_token() {
    let app = App::start().await;
    let good = Credentials::create(&app, &app.tenant).await;
    let unknown = |kind: TokenKind| format!("{}{:064x}", kind.prefix(), 7);
    let wrong_kind =
        Credentials { mailbox: good.pro.clone(), pro: good.live.clone(), live: good.mailbox.clone() };
    let all_credentials = [
        Credentials::all("x"),
        wrong_kind,
        Credentials { mailbox: good.live.clone(), pro: good.mailbox.clone(), live: good.pro.clone() },
        Credentials { mailbox: "a.b.c".into(), pro: unknown(TokenKind::Pro), live: unknown(TokenKind::Live) },
    ];
    for operation in guarded() {
        for credentials in &all_credentials {
            let answer = full_request(&app, operation, credentials, &unknown_path(operation)).send().await;
            assert_error(operation, &answer, 401, "invalid_token");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_credentials_of_a_suspended_tenant_with_account_disabled() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    for operation in guarded() {
        let answer = full_request(&app, operation, &credentials, &unknown_path(operation)).send().await;
        assert_error(operation, &answer, 403, "account_disabled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_expired_token_with_session_expired() {
    let app = App::start().await;
    let credentials = Credentials::create(&app, &app.tenant).await;
    for token in [&credentials.pro, &credentials.live] {
        rows::expire_token(&app.pool, token, app.clock.now() + SignedDuration::from_hours(1)).await;
    }
    app.advance_hours(2);
    let of_tokens = guarded().filter(|operation| operation.credentials != ["mailbox"]);
    for operation in of_tokens {
        let answer = full_request(&app, operation, &credentials, &unknown_path(operation)).send().await;
        assert_error(operation, &answer, 440, "session_expired");
    }
}

/// Besides its address, nothing exists for a minted token; parameters and bodies are not looked at.
#[tokio::test(flavor = "multi_thread")]
async fn answers_a_minted_token_with_not_found_beyond_its_address() {
    let app = App::start().await;
    let mut credentials = Credentials::create(&app, &app.tenant).await;
    credentials.live = app.mint(&app.tenant.live, "elsewhere@inbox.localhost").await.token;
    for operation in guarded().filter(|operation| operation.credentials.contains(&"live".to_owned())) {
        let answer = full_request(&app, operation, &credentials, &unknown_path(operation)).send().await;
        assert_error(operation, &answer, 404, "not_found");
    }
}
