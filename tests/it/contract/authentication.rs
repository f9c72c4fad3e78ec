//! Every operation that asks for a credential.

use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_tests::contract::{Operation, operations};
use tempmail_tests::{Answer, App};

use super::{Caller, bare, made_up, whole};

fn guarded() -> impl Iterator<Item = &'static Operation> {
    operations().iter().filter(|operation| !operation.credentials.is_empty())
}

fn is_error(operation: &Operation, answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.error(status), code, "{}", operation.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_authentication_required() {
    let app = App::start().await;
    for operation in guarded().filter(|operation| !operation.is_open) {
        let answer = bare(&app, operation, &made_up(operation)).send().await;
        is_error(operation, &answer, 401, "authentication_required");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_unknown_or_wrong_kind_one_is_invalid_token() {
    let app = App::start().await;
    let good = Caller::of(&app, &app.tenant).await;
    let unknown = |kind: TokenKind| format!("{}{:064x}", kind.prefix(), 7);
    let wrong_kind = Caller { mailbox: good.pro.clone(), pro: good.live.clone(), live: good.mailbox.clone() };
    let callers = [
        Caller::with("x"),
        wrong_kind,
        Caller { mailbox: good.live.clone(), pro: good.mailbox.clone(), live: good.pro.clone() },
        Caller { mailbox: "a.b.c".into(), pro: unknown(TokenKind::Pro), live: unknown(TokenKind::Live) },
    ];
    for operation in guarded() {
        for caller in &callers {
            let answer = whole(&app, operation, caller, &made_up(operation)).send().await;
            is_error(operation, &answer, 401, "invalid_token");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_suspended_tenant_is_account_disabled() {
    let app = App::start().await;
    let caller = Caller::of(&app, &app.tenant).await;
    let suspended = sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1").bind(app.tenant.id);
    suspended.execute(&app.pool).await.unwrap();
    for operation in guarded() {
        let answer = whole(&app, operation, &caller, &made_up(operation)).send().await;
        is_error(operation, &answer, 403, "account_disabled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_past_its_time_is_session_expired() {
    let app = App::start().await;
    let caller = Caller::of(&app, &app.tenant).await;
    for (kind, token) in [(TokenKind::Pro, &caller.pro), (TokenKind::Live, &caller.live)] {
        let hash = TokenHash::from_presented(kind, token).unwrap();
        sqlx::query("UPDATE api_token SET expires_at = created_at + interval '1 hour' WHERE hash = $1")
            .bind(hash.as_bytes().as_slice())
            .execute(&app.pool)
            .await
            .unwrap();
    }
    app.advance_hours(2);
    let of_tokens = guarded().filter(|operation| operation.credentials != ["mailbox"]);
    for operation in of_tokens {
        let answer = whole(&app, operation, &caller, &made_up(operation)).send().await;
        is_error(operation, &answer, 440, "session_expired");
    }
}
