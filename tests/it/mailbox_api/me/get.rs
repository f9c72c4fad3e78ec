//! `GET /api/me`

use serde_json::json;
use tempmail_tests::App;

#[tokio::test(flavor = "multi_thread")]
async fn returns_role_quota_and_usage() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    app.deliver("pro@inbox.localhost", "one", "").await;
    app.deliver("pro+tag@inbox.localhost", "two", "").await;
    for (mailbox, role, used) in [(&free, "free", 0), (&pro, "pro", sizes(&app, &pro).await)] {
        let me = app.get_mailbox(mailbox, "/api/me").await.expect(200);
        assert_eq!(
            me,
            json!({
                "id": mailbox.id,
                "address": mailbox.address,
                "role": role,
                "quota": 52_428_800,
                "used": used,
                "created_at": me["created_at"],
            })
        );
        let created = me["created_at"].as_str().unwrap();
        assert_eq!((created.len(), created.ends_with('Z')), (24, true), "{created}");
    }
}

async fn sizes(app: &App, mailbox: &tempmail_tests::app::Mailbox) -> u64 {
    app.messages(mailbox).await.iter().map(|message| message["size"].as_u64().unwrap()).sum()
}
