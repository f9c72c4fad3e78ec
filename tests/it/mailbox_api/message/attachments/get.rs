//! `GET /api/messages/{id}/attachments/{index}`

use tempmail_tests::App;

use super::super::with_a_file;

#[tokio::test(flavor = "multi_thread")]
async fn serves_an_attachment_as_a_download() {
    let app = App::start().await;
    let (mailbox, path) = with_a_file(&app).await;
    let attachment = app.get_mailbox(&mailbox, &format!("{path}/attachments/0")).await;
    assert_eq!((attachment.status, attachment.media_type()), (200, "application/pdf"));
    assert_eq!(attachment.header("content-disposition"), "attachment; filename=\"a.pdf\"");
    assert_eq!(attachment.header("x-content-type-options"), "nosniff");
    assert!(attachment.header("content-security-policy").contains("sandbox"));
    assert!(attachment.text().starts_with("%PDF"));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_an_unknown_index_and_400_for_a_non_integer() {
    let app = App::start().await;
    let (mailbox, path) = with_a_file(&app).await;
    for index in ["1", "4294967296", "99999999999999999999"] {
        let answer = app.get_mailbox(&mailbox, &format!("{path}/attachments/{index}")).await;
        answer.assert_api_error(404, "not_found");
    }
    for index in ["x", "-1", "1.0", "%20", "%FF"] {
        let answer = app.get_mailbox(&mailbox, &format!("{path}/attachments/{index}")).await;
        answer.assert_api_error(400, "invalid_request");
    }
}
