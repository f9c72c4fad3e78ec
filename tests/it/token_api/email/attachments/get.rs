//! `GET /v1/email/<id>/attachments/<i>`

use serde_json::json;
use tempmail_tests::App;

use super::super::multipart;

#[tokio::test(flavor = "multi_thread")]
async fn lists_attachments_and_serves_them_as_downloads() {
    let app = App::start().await;
    let id = multipart(&app).await;
    let email = app.get(&format!("/v1/email/{id}")).await.expect(200);
    let attachments = email["attachments"].as_array().unwrap();
    assert_eq!(attachments.len(), 2, "{attachments:?}");
    let picture = &attachments[0];
    assert_eq!(
        *picture,
        json!({ "index": 0, "filename": null, "content_type": "image/png", "size": 8, "content_id": "pic@x", "inline": true })
    );
    let page = &attachments[1];
    assert_eq!(
        (&page["index"], &page["filename"], &page["content_type"], &page["content_id"], &page["inline"]),
        (&json!(1), &json!("záznam.html"), &json!("text/html"), &json!(null), &json!(false))
    );

    let picture = app.get(&format!("/v1/email/{id}/attachments/0")).await;
    assert_eq!((picture.status, picture.media_type()), (200, "image/png"));
    assert_eq!(picture.body, b"\x89PNG\r\n\x1a\n");
    let page = app.get(&format!("/v1/email/{id}/attachments/1")).await;
    assert_eq!((page.status, page.media_type()), (200, "text/html"));
    assert!(page.text().starts_with("<script>alert(1)</script>"));
    assert_eq!(attachments[1]["size"], page.body.len());
    let disposition = page.header("content-disposition");
    assert!(disposition.starts_with("attachment"), "{disposition}");
    assert!(disposition.contains("filename*=UTF-8''z%C3%A1znam.html"), "{disposition}");
    for answer in [&picture, &page] {
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(answer.header("content-security-policy").contains("sandbox"));
        assert!(answer.header("content-disposition").starts_with("attachment"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_an_unknown_index_and_400_for_a_non_integer() {
    let app = App::start().await;
    let id = multipart(&app).await;
    for index in ["2", "1000", "4294967296", "99999999999999999999"] {
        let answer = app.get(&format!("/v1/email/{id}/attachments/{index}")).await;
        answer.assert_v1_error(404, "not_found");
    }
    for index in ["x", "-1", "1.0", "0x1", "%20"] {
        let answer = app.get(&format!("/v1/email/{id}/attachments/{index}")).await;
        assert_eq!(answer.status, 400, "{index}");
        answer.assert_v1_error(400, "invalid_request");
    }
}
