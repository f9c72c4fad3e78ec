//! `DELETE /pro/api/messages` and `DELETE /pro/api/messages/{id}`

use reqwest::Method;

use super::{Owners, PATH, id, subjects};

#[tokio::test(flavor = "multi_thread")]
async fn deletes_one_message_that_the_tenant_owns() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let (own, foreign) = (owners.list(&app.tenant.pro).await, owners.list(&owners.other.pro).await);
    let shared = app.emails("shared@inbox.localhost").await;
    let delete = async |id: &str| {
        app.request(Method::DELETE, &format!("{PATH}/{id}")).bearer(&app.tenant.pro).send().await
    };
    for hidden in [id(&foreign[0]), id(&foreign[1]), id(&shared[0])] {
        delete(hidden).await.assert_api_error(404, "not_found");
    }
    assert_eq!(delete(id(&own[0])).await.status, 204, "also at an address without a mailbox");
    delete(id(&own[0])).await.assert_api_error(404, "not_found");
    assert_eq!(subjects(&owners.list(&app.tenant.pro).await), ["quay mailbox"]);
    assert_eq!(owners.list(&owners.other.pro).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_everything_that_the_tenant_owns_and_nothing_else() {
    let owners = Owners::create().await;
    let app = &owners.app;
    for number in 0..5 {
        app.deliver(&format!("any{number}@quay.example"), "more", "x").await;
    }
    let delete_all = || app.request(Method::DELETE, PATH).bearer(&app.tenant.pro).send();
    assert_eq!(delete_all().await.status, 204);
    assert!(owners.list(&app.tenant.pro).await.is_empty());
    assert_eq!(delete_all().await.status, 204, "there is nothing left");
    assert_eq!(owners.list(&owners.other.pro).await.len(), 2);
    assert_eq!(app.emails("shared@inbox.localhost").await.len(), 1);
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 4, "of others");
    app.deliver("quay@inbox.localhost", "later", "x").await;
    assert_eq!(subjects(&owners.list(&app.tenant.pro).await), ["later"]);
}
