//! `/pro/api/domains`

mod delete;
mod get;
mod post;
mod verify {
    mod post;
}

use reqwest::Method;
use tempmail_tests::App;

use super::{ids_of_nothing, manage};

/// Asserts that an id that is no UUID, nobody's or another's is not found.
async fn knows_own_ids_only(app: &App, method: Method, rest: &str) {
    let other = app.another_tenant("lighthouse").await;
    let theirs = app.domain(&other, "theirs.test").await.id;
    for id in ids_of_nothing(app).into_iter().chain([theirs.clone()]) {
        let path = format!("/pro/api/domains/{id}{rest}");
        let answer = app.request(method.clone(), &path).bearer(&app.tenant.pro).send().await;
        answer.is_api_error(404, "not_found");
    }
    assert_eq!(app.domain_state(&other, &theirs).await.0, "pending");
}

/// Makes a domain one that a Kubernetes resource manages.
async fn hand_to_kubernetes(app: &App, id: &str) {
    manage(app, "UPDATE domain SET managed_by = 'kubernetes' WHERE id = $1", id.parse().unwrap()).await;
}
