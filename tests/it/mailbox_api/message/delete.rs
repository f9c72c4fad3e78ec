//! `DELETE /api/messages/{id}`

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_message_and_frees_its_quota() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "one", "").await;
    app.deliver("name@inbox.localhost", "two", "").await;
    let messages = app.messages(&mailbox).await;
    let path = format!("/api/messages/{}", messages[0]["id"].as_str().unwrap());
    let delete = || app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send();
    assert_eq!(delete().await.status, 204);
    delete().await.assert_api_error(404, "not_found");
    app.get_mailbox(&mailbox, &path).await.assert_api_error(404, "not_found");
    let left = app.messages(&mailbox).await;
    assert_eq!((left.len(), &left[0]["subject"]), (1, &"one".into()));
    let me = app.get_mailbox(&mailbox, "/api/me").await.expect(200);
    assert_eq!(me["used"], left[0]["size"]);
}
