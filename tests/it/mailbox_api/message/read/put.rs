//! `PUT /api/messages/{id}/read`

use reqwest::Method;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn marks_a_message_as_read() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "one", "").await;
    app.deliver("name@inbox.localhost", "two", "").await;
    let id = app.messages(&mailbox).await[1]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/messages/{id}/read");
    for _ in 0..2 {
        let answer = app.request(Method::PUT, &path).bearer(&mailbox.jwt).send().await;
        assert_eq!(answer.status, 204);
    }
    let read: Vec<bool> =
        app.messages(&mailbox).await.iter().map(|message| message["is_read"].as_bool().unwrap()).collect();
    assert_eq!(read, [false, true]);
    let message = app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.expect(200);
    assert_eq!(message["is_read"], true);
}
