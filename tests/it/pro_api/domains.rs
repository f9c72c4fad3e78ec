//! `/pro/api/domains`

mod delete;
mod get;
mod post;
mod verify {
    mod post;
}

use reqwest::Method;
use tempmail_tests::App;

use super::unknown_ids;

/// Asserts that unknown and foreign ids are not found.
async fn assert_knows_own_ids_only(app: &App, method: Method, rest: &str) {
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.domain(&other, "theirs.test").await.id;
    for id in unknown_ids(app).into_iter().chain([theirs.clone()]) {
        let path = format!("/pro/api/domains/{id}{rest}");
        let answer = app.request(method.clone(), &path).bearer(&app.tenant.pro).send().await;
        answer.assert_api_error(404, "not_found");
    }
    assert_eq!(app.domain_state(&other, &theirs).await.0, "pending");
}
