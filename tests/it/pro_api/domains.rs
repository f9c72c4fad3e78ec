//! `/pro/api/domains`

mod delete;
mod get;
mod post;
mod verify;

use reqwest::Method;
use tempmail_tests::App;

/// Asserts who a route is for.
async fn takes_pro_tokens_only(app: &App, method: Method, path: &str) {
    let ask = || app.request(method.clone(), path);
    ask().send().await.is_api_error(401, "authentication_required");
    ask().bearer(&app.tenant.live).send().await.is_api_error(401, "invalid_token");
    let suspended = app.another_tenant("drydock").await;
    sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1")
        .bind(suspended.id)
        .execute(&app.pool)
        .await
        .unwrap();
    ask().bearer(&suspended.pro).send().await.is_api_error(403, "account_disabled");
}

/// Asserts that an id that is no UUID, nobody's or another's is not found.
async fn knows_own_ids_only(app: &App, method: Method, rest: &str) {
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.domain(&other, "theirs.test").await.id;
    for id in ["none", "00000000-0000-7000-8000-00000000ffff", &theirs] {
        let path = format!("/pro/api/domains/{id}{rest}");
        let answer = app.request(method.clone(), &path).bearer(&app.tenant.pro).send().await;
        answer.is_api_error(404, "not_found");
    }
    assert_eq!(app.domain_state(&other, &theirs).await.0, "pending");
}

/// Makes a domain one that a Kubernetes resource manages.
async fn hand_to_kubernetes(app: &App, id: &str) {
    let managed = sqlx::query("UPDATE domain SET managed_by = 'kubernetes' WHERE id = $1::uuid").bind(id);
    assert_eq!(managed.execute(&app.pool).await.unwrap().rows_affected(), 1);
}
