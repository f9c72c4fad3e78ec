//! `DELETE /v1/email/<id>`

use tempmail_tests::App;

use super::ADDRESS;

#[tokio::test(flavor = "multi_thread")]
async fn deletes_one_email_and_keeps_the_others() {
    let app = App::start().await;
    app.deliver(ADDRESS, "one", "").await;
    app.deliver(ADDRESS, "two", "").await;
    let emails = app.emails(ADDRESS).await;
    let path = format!("/v1/email/{}", emails[0]["id"].as_str().unwrap());
    assert_eq!(app.delete(&path).await.status, 204);
    app.delete(&path).await.assert_v1_error(404, "not_found");
    app.get(&path).await.assert_v1_error(404, "not_found");
    app.get(&format!("{path}/raw")).await.assert_v1_error(404, "not_found");
    let left = app.emails(ADDRESS).await;
    assert_eq!((left.len(), &left[0]["subject"]), (1, &"one".into()));
    app.advance_hours(2);
    app.get(&path).await.assert_v1_error(410, "email_expired");
}
