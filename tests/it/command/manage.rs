//! `tempmail mail list`, `read` and `delete`

use serde_json::json;
use tempmail_tests::{App, send_mail, smtp};

use super::mail;

#[tokio::test(flavor = "multi_thread")]
async fn lists_the_newest_mail_first() {
    let app = App::start().await;
    let empty = mail(&app, &["list", "ship@inbox.localhost", "--json"]).await.json();
    assert!(empty["emails"] == json!([]) && empty["next_since"].is_string(), "{empty}");
    for subject in ["one", "two", "three"] {
        app.deliver("ship@inbox.localhost", subject, "").await;
    }
    let listed = mail(&app, &["list", "ship@inbox.localhost", "--limit", "2"]).await;
    let rows: Vec<&str> = listed.success().lines().collect();
    assert!(rows[0].starts_with("ID ") && rows[0].contains(" SUBJECT"), "{rows:?}");
    assert!(rows[1].ends_with("  three") && rows[2].ends_with("  two") && rows.len() == 3, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_what_the_tenant_owns_without_shared_inboxes() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    app.deliver("a@ships.example", "own", "").await;
    app.deliver("a@inbox.localhost", "shared", "").await;
    for scope in [&["--all"][..], &["--domain", "ships.example"]] {
        let arguments: Vec<&str> = ["list", "--json"].iter().chain(scope).copied().collect();
        let listed = mail(&app, &arguments).await.json();
        let subjects: Vec<_> =
            listed["emails"].as_array().unwrap().iter().map(|email| &email["subject"]).collect();
        assert_eq!(subjects, ["own"], "{scope:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_a_mail_as_text_or_json() {
    let app = App::start().await;
    let message = smtp::message("Ada <ada@client.example>", "hello", "It works.\r\nReally.\r\n");
    let reply = send_mail(app.smtp(), "ada@client.example", "ship@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let id = app.emails("ship@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let read = mail(&app, &["read", &id]).await;
    let (head, text) = read.success().split_once("\n\n").expect("an empty line is before the text");
    assert!(
        head.contains("from      Ada <ada@client.example>\n") && head.contains("subject   hello\n"),
        "{head}"
    );
    assert_eq!(text.replace("\r\n", "\n"), "It works.\nReally.");
    let json = mail(&app, &["read", &id, "--json"]).await.json();
    assert_eq!((json["id"].as_str(), json["subject"].as_str()), (Some(id.as_str()), Some("hello")));
    assert!(json["headers"].is_array() && json["size"].is_number() && json["codes"].is_array(), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_mails_by_id_and_inboxes_by_address() {
    let app = App::start().await;
    for subject in ["one", "two", "three"] {
        app.deliver("ship@inbox.localhost", subject, "").await;
    }
    let id = app.emails("ship@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let deleted = mail(&app, &["delete", &id]).await;
    assert_eq!((deleted.code, deleted.stdout.as_str(), deleted.stderr.as_str()), (Some(0), "", ""));
    assert_eq!(app.emails("ship@inbox.localhost").await.len(), 2);
    mail(&app, &["delete", "--inbox", "ship@inbox.localhost", "--json"]).await.json();
    app.assert_inbox_is_empty("ship@inbox.localhost").await;
}
