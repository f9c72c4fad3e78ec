//! `/v1/tokens`

mod delete;
mod get;
mod post;

use reqwest::Method;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_tests::App;

use crate::pro_api::end_token;

/// Asserts that a route takes live tokens that may act, and nothing else.
async fn is_for_live_alone(method: Method, path: &str) {
    let app = App::start().await;
    let ask = async |token: &str| app.request(method.clone(), path).live(token).send().await;
    let bare = app.request(method.clone(), path).send().await;
    bare.is_v1_error(401, "authentication_required");
    assert!(!bare.header("www-authenticate").is_empty());
    let unknown = PlainToken::generate(TokenKind::Live).unwrap();
    let revoked = app.token(&app.tenant, TokenKind::Live).await;
    end_token(&app, &revoked, "UPDATE api_token SET revoked_at = $2 WHERE hash = $1").await;
    for token in ["x", unknown.expose(), &app.tenant.pro, &revoked] {
        ask(token).await.is_v1_error(401, "invalid_token");
    }
    let expired = app.token(&app.tenant, TokenKind::Live).await;
    end_token(&app, &expired, "UPDATE api_token SET expires_at = $2 WHERE hash = $1").await;
    ask(&expired).await.is_v1_error(440, "session_expired");
    let admitted = ask(&app.tenant.live).await;
    assert!(![401, 440].contains(&admitted.status), "{}", admitted.text());
    let suspend = "UPDATE tenant SET suspended = true WHERE id = $1";
    sqlx::query(suspend).bind(app.tenant.id).execute(&app.pool).await.unwrap();
    ask(&app.tenant.live).await.is_v1_error(403, "account_disabled");
}
