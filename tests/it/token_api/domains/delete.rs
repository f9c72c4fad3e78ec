//! `DELETE /v1/domains/{id}`

use reqwest::Method;
use tempmail_tests::App;
use tempmail_tests::rows::{self, ManagedKind};

use super::{create, list};
use crate::token_api::assert_accepts_only_live_tokens;

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_live_tokens() {
    assert_accepts_only_live_tokens(Method::DELETE, "/v1/domains/019a0000-0000-7000-8000-000000000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_domain_of_the_tenant_once() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = create(&app, &other, "theirs.test").await.expect(201)["id"].as_str().unwrap().to_owned();
    let ours = create(&app, &app.tenant, "ships.test").await.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(app.delete(&format!("/v1/domains/{ours}")).await.status, 204);
    assert!(list(&app).await.is_empty());
    for id in [ours.as_str(), theirs.as_str(), "none", "00000000-0000-7000-8000-00000000ffff"] {
        app.delete(&format!("/v1/domains/{id}")).await.assert_v1_error(404, "not_found");
    }
    assert_eq!(app.domains(&other).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_the_mail_of_the_domain() {
    let app = App::start().await;
    let id = app.custom_domain(&app.tenant, "ships.test").await;
    app.deliver("any@ships.test", "mine", "").await;
    assert_eq!(app.delete(&format!("/v1/domains/{id}")).await.status, 204);
    app.get("/v1/inbox/any@ships.test").await.assert_v1_error(404, "not_found");
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_domain_managed_by_kubernetes() {
    let app = App::start().await;
    let id = app.domain(&app.tenant, "ships.test").await.id;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Domain, id.parse().unwrap()).await;
    app.delete(&format!("/v1/domains/{id}")).await.assert_v1_error(409, "managed_by_kubernetes");
    assert_eq!(list(&app).await.len(), 1);
}
