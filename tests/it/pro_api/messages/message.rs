//! `/pro/api/messages/{id}` and what is below: contents of the mailboxes' messages.

use reqwest::Method;
use tempmail_tests::{App, Response};

use super::{Owners, PATH, id};
use crate::pro_api::pro;

async fn get(app: &App, pro: &str, path: &str) -> Response {
    app.request(Method::GET, &format!("{PATH}/{path}")).bearer(pro).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_message_of_a_mailbox_as_its_owner_sees_it() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver(&mailbox.address, "hello", "It works.").await;
    let message = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    for (path, own) in [("", ""), ("/source", "/raw")] {
        let as_tenant = get(&app, &app.tenant.pro, &format!("{message}{path}")).await;
        let as_owner = app.get_mailbox(&mailbox, &format!("/api/messages/{message}{own}")).await;
        assert_eq!((as_tenant.status, &as_tenant.body), (200, &as_owner.body), "{path}");
        assert_eq!(as_tenant.header("content-type"), as_owner.header("content-type"));
        assert_eq!(as_tenant.header("content-disposition"), as_owner.header("content-disposition"));
    }
    get(&app, &app.tenant.pro, &format!("{message}/attachments/0")).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_nothing_but_messages_of_the_tenants_mailboxes() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let own = owners.list(&app.tenant.pro).await;
    let foreign = owners.list(&owners.other.pro).await;
    let shared = app.emails("shared@inbox.localhost").await;
    // Of its custom domain, of another tenant, and of a shared inbox.
    for hidden in [id(&own[0]), id(&foreign[0]), id(&foreign[1]), id(&shared[0])] {
        for below in ["", "/source", "/attachments/0"] {
            let answer = get(app, &app.tenant.pro, &format!("{hidden}{below}")).await;
            answer.assert_api_error(404, "not_found");
        }
    }
    assert_eq!(get(app, &app.tenant.pro, id(&own[1])).await.expect(200)["subject"], "quay mailbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_no_message_of_a_mailbox_that_is_deleted() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver(&mailbox.address, "hello", "x").await;
    let message = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/pro/api/accounts/{}", mailbox.id);
    assert_eq!(pro(&app, Method::DELETE, &path).send().await.status, 204);
    get(&app, &app.tenant.pro, &message).await.assert_api_error(404, "not_found");
}
