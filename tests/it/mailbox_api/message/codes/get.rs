//! `GET /api/messages/{id}/codes`

use serde_json::json;
use tempmail_model::id::new_id;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_codes_and_links_of_the_full_message() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let text = "Your verification code is 482913.\r\n\r\nReset your password:\r\nhttps://client.example/reset?t=9f8a7b6c5d4e";
    app.deliver("name@inbox.localhost", "Sign in", text).await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let found = app.get_mailbox(&mailbox, &format!("/api/messages/{id}/codes")).await.expect(200);
    assert_eq!(found["codes"][0]["code"], "482913");
    assert_eq!(found["links"][0]["kind"], "reset_password");
    let message = app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.expect(200);
    assert_eq!(json!({ "codes": message["codes"], "links": message["links"] }), found);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_or_410_like_the_full_message() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let get = async |id: &str| app.get_mailbox(&mailbox, &format!("/api/messages/{id}/codes")).await;
    get(&new_id(jiff::Timestamp::UNIX_EPOCH).to_string()).await.assert_api_error(410, "email_expired");
    get("no-uuid").await.assert_api_error(404, "not_found");
}
