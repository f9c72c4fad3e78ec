//! Requests to the running roles.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::app::SYSTEM_DOMAIN;
use tempmail_tests::http::percent;
use tempmail_tests::{MintedToken, SmtpClient, smtp};
use uuid::Uuid;

use super::fixture::QueryFixture;
use super::session::Session;

pub async fn record_token_api(fixture: &QueryFixture, session: &mut Session<'_>) {
    let app = &fixture.app;
    let get = |path: String| async move {
        app.get(&path).await.expect(200);
    };
    let addresses = [
        format!("inbox13@{SYSTEM_DOMAIN}"),
        fixture.mailbox.address.clone(),
        format!("a3@{}", fixture.domain),
    ];
    let address = |number: usize| addresses[number % addresses.len()].clone();
    session
        .record("GET /v1/inbox/{address}", &["find_live_token", "scan_inbox"], |number| {
            get(format!("/v1/inbox/{}", address(number)))
        })
        .await;
    session
        .record("GET /v1/inbox/{address}?since=", &["find_live_token", "scan_inbox"], |number| {
            get(format!("/v1/inbox/{}?since={}", address(number), fixture.since))
        })
        .await;

    let minted: Vec<MintedToken> = join_all(addresses.iter().map(|it| app.mint(&app.tenant.live, it))).await;
    session
        .record("GET /v1/inbox/{address} with a minted token", &["find_live_token", "scan_inbox"], |number| {
            let (token, path) =
                (&minted[number % minted.len()].token, format!("/v1/inbox/{}", address(number)));
            async move {
                app.get_as(token, &path).await.expect(200);
            }
        })
        .await;
    // The mail is read, and the caller's rights are judged once more before it is answered.
    let statements = &[
        "find_live_token",
        "scan_inbox",
        "find_readable_message",
        "find_token_by_id",
        "find_readable_message",
    ];
    let wait = |body: Value| async move {
        app.wait_for_email(&app.tenant.live, &body).await.expect(200);
    };
    session.record("POST /v1/wait", statements, |number| wait(json!({ "address": address(number) }))).await;
    session
        .record("POST /v1/wait with since", statements, |number| {
            wait(json!({ "address": address(number), "since": fixture.since }))
        })
        .await;
    session
        .record("POST /v1/wait with after", statements, |number| {
            wait(json!({ "address": address(number), "after": "2000-01-01T00:00:00Z" }))
        })
        .await;
    let statements = &[
        "find_live_token",
        "scan_tenant",
        "find_readable_message",
        "find_token_by_id",
        "find_readable_message",
    ];
    session.record("POST /v1/wait for all", statements, |_| wait(json!({ "all": true, "since": "0" }))).await;
    session
        .record("GET /v1/emails", &["find_live_token", "scan_tenant"], |_| get("/v1/emails".to_owned()))
        .await;
    session
        .record("GET /v1/emails?address=", &["find_live_token", "scan_inbox"], |number| {
            get(format!("/v1/emails?address={}", address(number)))
        })
        .await;

    let readable = fixture.ids().await;
    let id = |number: usize| readable[number % readable.len()][number];
    session
        .record("GET /v1/email/{id}/codes", &["find_live_token", "find_readable_message"], |number| {
            get(format!("/v1/email/{}/codes", id(number)))
        })
        .await;
    session
        .record("GET /v1/email/{id}", &["find_live_token", "find_readable_message"], |number| {
            get(format!("/v1/email/{}", id(number)))
        })
        .await;
    session
        .record(
            "GET /v1/email/{id}/raw",
            &["find_live_token", "find_readable_message"],
            |number| async move {
                assert_eq!(app.get(&format!("/v1/email/{}/raw", id(number))).await.status, 200);
            },
        )
        .await;

    let large = format!("large@{SYSTEM_DOMAIN}");
    // Random digits: 75 KB, compressed.
    let text: Vec<String> = (0..4_500).map(|_| Uuid::new_v4().simple().to_string()).collect();
    app.deliver(&large, "large", &text.join("\r\n")).await;
    let large = app.emails(&large).await[0]["id"].as_str().unwrap().to_owned();
    session
        .record(
            "GET /v1/email/{id} of 150 KB",
            &["find_live_token", "find_readable_message", "raw_chunk"],
            |_| get(format!("/v1/email/{large}")),
        )
        .await;

    session
        .record(
            "DELETE /v1/email/{id}",
            &["find_live_token", "find_readable_message", "delete_message", "flush"],
            |number| async move {
                let path = format!("/v1/email/{}", id(number));
                assert_eq!(app.delete(&path).await.status, 204);
            },
        )
        .await;
    session
        .record(
            "DELETE /v1/inbox/{address}",
            &["find_live_token", "clear_inbox", "flush"],
            |number| async move {
                let path = format!("/v1/inbox/inbox{}@{SYSTEM_DOMAIN}", 100 + number);
                assert_eq!(app.delete(&path).await.status, 204);
            },
        )
        .await;
}

/// What went to a tag of a mailbox with much other mail. Last: a mailbox is read past the tags that were cleared.
pub async fn record_tags(fixture: &QueryFixture, session: &mut Session<'_>) {
    let app = &fixture.app;
    session.process = None;
    let tag = |number: usize| format!("box+{number}@{SYSTEM_DOMAIN}");
    join_all((0..usize::from(super::REPEATED)).map(|number| async move {
        app.deliver(&tag(number), "tagged", "the text of all").await;
    }))
    .await;
    session
        .record(
            "GET /v1/inbox/{address with a tag}",
            &["find_live_token", "scan_inbox"],
            |number| async move {
                app.get(&format!("/v1/inbox/{}", percent(&tag(number)))).await.expect(200);
            },
        )
        .await;
    session
        .record(
            "DELETE /v1/inbox/{address with a tag}",
            &["find_live_token", "clear_inbox", "flush"],
            |number| async move {
                assert_eq!(app.delete(&format!("/v1/inbox/{}", percent(&tag(number)))).await.status, 204);
            },
        )
        .await;
}

pub async fn record_mailbox_api(fixture: &QueryFixture, session: &mut Session<'_>) {
    let (app, mailbox) = (&fixture.app, &fixture.mailbox);
    let get = |path: String| async move {
        app.get_mailbox(mailbox, &path).await.expect(200);
    };
    session
        .record("GET /api/messages", &["find_mailbox", "list_mailbox_messages"], |_| {
            get("/api/messages".to_owned())
        })
        .await;
    let expected = &["find_mailbox", "skip_mailbox_messages", "list_mailbox_messages"];
    session.record("GET /api/messages?page=2", expected, |_| get("/api/messages?page=2".to_owned())).await;
    let [_, ids, _] = fixture.ids().await;
    session
        .record("GET /api/messages/{id}", &["find_mailbox", "find_mailbox_message"], |number| {
            get(format!("/api/messages/{}", ids[number]))
        })
        .await;
    session.record("GET /api/me", &["find_mailbox", "mailbox_used"], |_| get("/api/me".to_owned())).await;
    session
        .record("POST /api/token", &["find_mailbox_to_sign_in"], |_| async move {
            let body = json!({ "address": mailbox.address, "password": mailbox.password });
            app.request(Method::POST, "/api/token").json(&body).send().await.expect(200);
        })
        .await;
}

pub async fn record_pro_api(fixture: &QueryFixture, session: &mut Session<'_>) {
    let app = &fixture.app;
    session
        .record("GET /pro/api/accounts", &["find_token", "list_tenant_mailboxes"], |number| async move {
            let path = format!("/pro/api/accounts?page={}", 1 + number % 2);
            app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await.expect(200);
        })
        .await;
    let list = |page: usize| async move {
        let path = format!("/pro/api/messages?page={page}");
        app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await.expect(200);
    };
    session.record("GET /pro/api/messages", &["find_token", "list_tenant_messages"], |_| list(1)).await;
    let expected = &["find_token", "skip_tenant_messages", "list_tenant_messages"];
    session.record("GET /pro/api/messages?page=2", expected, |number| list(2 + number % 3)).await;
}

pub async fn record_mail(fixture: &QueryFixture, session: &mut Session<'_>) {
    let send = |recipient: String| async move {
        let mut client = SmtpClient::connect_with_ehlo(fixture.app.smtp()).await;
        client.expect_positive("MAIL FROM:<ada@client.example> SIZE=2000").await;
        client.expect_positive(&format!("RCPT TO:<{recipient}>")).await;
        client.expect_positive("DATA").await;
        client.send(smtp::dot_stuffed(&smtp::message("ada@client.example", "hello", "text"))).await;
        assert_eq!(client.reply().await.code, 250);
        client.expect_positive("QUIT").await;
    };
    session
        .record_with_fresh_view("a mail to an address without a mailbox", &["accept_mail"], |number| {
            send(format!("inbox{number}@{SYSTEM_DOMAIN}"))
        })
        .await;
    // Each to another mailbox: the accepted recipient is cached for 5 s.
    session
        .record("a mail to a mailbox", &["find_recipients", "accept_mail"], |number| {
            send(fixture.others[number].address.clone())
        })
        .await;
    session
        .record("a mail to a custom domain", &["find_recipients", "accept_mail"], |number| {
            send(format!("c{number}@{}", fixture.domain))
        })
        .await;
}
