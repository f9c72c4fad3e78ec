//! `/api/messages…`

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::{App, SmtpClient};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn summaries_carry_what_the_interface_says() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    assert!(app.messages(&mailbox).await.is_empty());
    app.deliver("name@inbox.localhost", "Hello", "line one\r\n  line   two").await;
    let messages = app.messages(&mailbox).await;
    let message = &messages[0];
    let mut keys: Vec<&String> = message.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["created_at", "from", "id", "is_read", "preview_text", "sender", "size", "subject"]);
    assert_eq!(message["sender"], "ada@client.example");
    assert_eq!(message["from"], "Ada <ada@client.example>");
    assert_eq!(message["subject"], "Hello");
    assert_eq!(message["preview_text"], "line one line two");
    assert_eq!(message["is_read"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_newest_first_30_a_page() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let mut client = SmtpClient::hello(app.smtp()).await;
    for i in 1..=65 {
        let message = tempmail_tests::smtp::message("a@client.example", &format!("{i}"), "");
        let reply = client.transact("a@client.example", &["name@inbox.localhost"], &message).await;
        assert_eq!(reply.code, 250);
    }
    for (query, newest, expected) in
        [("", 65, 30), ("?page=1", 65, 30), ("?page=2", 35, 30), ("?page=3", 5, 5)]
    {
        let body = app.get_mailbox(&mailbox, &format!("/api/messages{query}")).await.expect(200);
        let subjects: Vec<i32> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["subject"].as_str().unwrap().parse().unwrap())
            .collect();
        let wanted: Vec<i32> = (0..expected).map(|i| newest - i).collect();
        assert_eq!(subjects, wanted, "{query}");
    }
    let beyond = app.get_mailbox(&mailbox, "/api/messages?page=4").await.expect(200);
    assert!(beyond["messages"].as_array().unwrap().is_empty());
    for page in ["0", "-1", "x", ""] {
        let answer = app.get_mailbox(&mailbox, &format!("/api/messages?page={page}")).await;
        answer.is_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains("page"));
    }
    let far = app.get_mailbox(&mailbox, "/api/messages?page=9999999999").await;
    assert!(far.status == 200 || far.status == 400, "{}", far.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_told_in_full() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name+tag@inbox.localhost", "Hello", "body text").await;
    let id = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    let message = app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.expect(200);
    for key in [
        "id",
        "sender",
        "from",
        "subject",
        "address",
        "size",
        "created_at",
        "text_body",
        "html_body",
        "attachments",
    ] {
        assert!(message.get(key).is_some(), "{key} is missing: {message}");
    }
    assert_eq!(message["address"], "name+tag@inbox.localhost");
    assert_eq!(message["text_body"].as_str().unwrap().trim_end(), "body text");
    assert_eq!(message["attachments"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_read_once_it_was_marked() {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_and_attachments_are_served() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let sent = "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: application/pdf\r\n\
        Content-Disposition: attachment; filename=\"a.pdf\"\r\n\r\n%PDF\r\n";
    let reply =
        tempmail_tests::send_mail(app.smtp(), "a@client.example", "name@inbox.localhost", sent.as_bytes())
            .await;
    assert_eq!(reply.code, 250);
    let summary = app.messages(&mailbox).await[0].clone();
    let path = format!("/api/messages/{}", summary["id"].as_str().unwrap());
    let raw = app.get_mailbox(&mailbox, &format!("{path}/raw")).await;
    assert_eq!((raw.status, raw.media_type()), (200, "message/rfc822"));
    assert!(
        raw.text().ends_with(sent) && raw.text().contains("for <name@inbox.localhost>"),
        "{}",
        raw.text()
    );
    assert_eq!(summary["size"], raw.body.len());
    let attachment = app.get_mailbox(&mailbox, &format!("{path}/attachments/0")).await;
    assert_eq!((attachment.status, attachment.media_type()), (200, "application/pdf"));
    assert!(attachment.header("content-disposition").contains("a.pdf"));
    assert_eq!(attachment.header("x-content-type-options"), "nosniff");
    app.get_mailbox(&mailbox, &format!("{path}/attachments/1")).await.is_api_error(404, "not_found");
    app.get_mailbox(&mailbox, &format!("{path}/attachments/x")).await.is_api_error(400, "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_message_is_gone_and_its_octets_are_free() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "one", "").await;
    app.deliver("name@inbox.localhost", "two", "").await;
    let messages = app.messages(&mailbox).await;
    let path = format!("/api/messages/{}", messages[0]["id"].as_str().unwrap());
    let delete = || app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send();
    assert_eq!(delete().await.status, 204);
    delete().await.is_api_error(404, "not_found");
    app.get_mailbox(&mailbox, &path).await.is_api_error(404, "not_found");
    let left = app.messages(&mailbox).await;
    assert_eq!((left.len(), &left[0]["subject"]), (1, &"one".into()));
    let me = app.get_mailbox(&mailbox, "/api/me").await.expect(200);
    assert_eq!(me["used"], left[0]["size"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn anothers_message_is_as_one_that_never_was() {
    let app = App::start().await;
    let mine = app.mailbox(None, "mine@inbox.localhost").await;
    let theirs = app.mailbox(None, "theirs@inbox.localhost").await;
    app.deliver("theirs@inbox.localhost", "private", "").await;
    app.deliver("shared@inbox.localhost", "shared", "").await;
    let private = app.messages(&theirs).await[0]["id"].as_str().unwrap().to_owned();
    let shared = app.emails("shared@inbox.localhost").await[0]["id"].as_str().unwrap().to_owned();
    let unknown = new_id(app.clock.now()).to_string();
    for (method, rest) in [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::GET, "/raw"),
        (Method::GET, "/attachments/0"),
        (Method::PUT, "/read"),
    ] {
        let ask = |id: &str| {
            app.request(method.clone(), &format!("/api/messages/{id}{rest}")).bearer(&mine.jwt).send()
        };
        let nobodys = ask(&unknown).await;
        nobodys.is_api_error(404, "not_found");
        for id in [&private, &shared] {
            let answer = ask(id).await;
            assert_eq!((answer.status, answer.text()), (nobodys.status, nobodys.text()), "{method} {rest}");
        }
    }
    assert_eq!(app.messages(&theirs).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_id_is_answered_by_its_own_time() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let old = new_id(app.clock.now() - SignedDuration::from_mins(61));
    app.get_mailbox(&mailbox, &format!("/api/messages/{old}")).await.is_api_error(410, "email_expired");
    for id in [Uuid::new_v4().to_string(), "no-uuid".into()] {
        app.get_mailbox(&mailbox, &format!("/api/messages/{id}")).await.is_api_error(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_of_a_free_mailbox_expires_after_an_hour_and_of_a_pro_one_after_72() {
    let app = App::start().await;
    let free = app.mailbox(None, "free@inbox.localhost").await;
    let pro = app.mailbox(Some(&app.tenant.pro), "pro@inbox.localhost").await;
    for mailbox in [&free, &pro] {
        app.deliver(&mailbox.address, "mail", "").await;
    }
    let id = app.messages(&free).await[0]["id"].as_str().unwrap().to_owned();
    app.clock.advance(SignedDuration::from_mins(61));
    assert!(app.messages(&free).await.is_empty());
    assert_eq!(app.get_mailbox(&free, "/api/me").await.expect(200)["used"], 0);
    app.get_mailbox(&free, &format!("/api/messages/{id}")).await.is_api_error(410, "email_expired");
    assert_eq!(app.messages(&pro).await.len(), 1);
    app.advance_hours(71);
    assert!(app.messages(&pro).await.is_empty());
    assert_eq!(app.get_mailbox(&pro, "/api/me").await.expect(200)["used"], 0);
}
