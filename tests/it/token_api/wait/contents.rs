//! `match`: what the mail must have.

use serde_json::{Value, json};
use tempmail_tests::{App, corpus, send_mail};

use super::{ADDRESS, look, on_address, subject};

/// Sends a mail as it is.
async fn send(app: &App, mail: &[u8]) {
    let reply = send_mail(app.smtp(), "ada@client.example", ADDRESS, mail).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

/// Sends a mail with a plain text, an HTML and perhaps an attachment.
async fn send_both(app: &App, subject: &str, text: &str, html: &str, attachment: bool) {
    let mut mail = format!(
        "From: ada@client.example\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=m\r\n\r\n\
         --m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
         --a\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n\
         --a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n--a--\r\n"
    );
    if attachment {
        mail.push_str(
            "--m\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF\r\n",
        );
    }
    mail.push_str("--m--\r\n");
    send(app, mail.as_bytes()).await;
}

/// The subject of the oldest mail that matches, if there is one.
async fn oldest(app: &App, wanted: &Value) -> Option<String> {
    let answer = look(app, &json!({ "since": "0", "match": wanted })).await;
    match answer.status {
        204 => None,
        _ => Some(subject(&answer.expect(200)).to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_every_field_ignoring_case() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let since = app.cursor_as(&app.tenant.live).await;
    app.deliver("box+shop@inbox.localhost", "Your CODE", "Use 4711.").await;
    app.deliver("box+news@inbox.localhost", "Your code", "Use 4712.").await;
    for (wanted, expected) in [
        (json!({}), Some("box+shop@inbox.localhost")),
        (json!({ "to": "BOX+News@" }), Some("box+news@inbox.localhost")),
        (json!({ "subject": "code", "to": "+news" }), Some("box+news@inbox.localhost")),
        (json!({ "from": "ada <ADA@client.example" }), Some("box+shop@inbox.localhost")),
        (json!({ "from": "ada", "subject": "code", "text": "use 4712" }), Some("box+news@inbox.localhost")),
        (json!({ "from": "ada", "subject": "code", "to": "+shop", "text": "4712" }), None),
        (json!({ "from": "bob" }), None),
        (json!({ "text": "" }), Some("box+shop@inbox.localhost")),
    ] {
        let body = json!({ "all": true, "since": since, "match": wanted, "timeout": 0 });
        let answer = app.wait_for_email(&app.tenant.live, &body).await;
        let address = (answer.status == 200).then(|| answer.json()["email"]["address"].clone());
        assert_eq!(address, expected.map(Value::from), "{wanted}");
    }
}

/// Senders write letters with accents composed or decomposed, which nobody sees.
#[tokio::test(flavor = "multi_thread")]
async fn compares_folded_texts_and_canonical_equivalents() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let since = app.cursor_as(&app.tenant.live).await;
    let mail = "From: Andre\u{301} <a@client.example>\r\nTo: box@inbox.localhost\r\nSubject: Cafe\u{301} Straße ΟΔΟΣ\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\r\nGru\u{308}ße\r\n";
    let reply = send_mail(app.smtp(), "ada@client.example", "box@inbox.localhost", mail.as_bytes()).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    for (wanted, is_found) in [
        (json!({ "subject": "caf\u{e9} STRASSE οδος" }), true),
        (json!({ "subject": "CAFE\u{301}" }), true),
        (json!({ "subject": "cafe" }), false),
        (json!({ "from": "ANDR\u{c9}" }), true),
        (json!({ "text": "gr\u{fc}sse" }), true),
    ] {
        let body = json!({ "all": true, "since": since, "match": wanted, "timeout": 0 });
        let answer = app.wait_for_email(&app.tenant.live, &body).await;
        assert_eq!(answer.status == 200, is_found, "{wanted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compares_plain_characters_only() {
    let app = App::start().await;
    app.deliver(ADDRESS, "plain", "a text").await;
    app.deliver(ADDRESS, "100% of a_b\\c", "50% of (x)* [y]").await;
    for wanted in [
        json!({ "subject": "%" }),
        json!({ "subject": "A_B\\" }),
        json!({ "text": "% of (X)*" }),
        json!({ "text": "[y]" }),
    ] {
        assert_eq!(oldest(&app, &wanted).await.as_deref(), Some("100% of a_b\\c"), "{wanted}");
    }
    for wanted in [json!({ "subject": ".*" }), json!({ "text": "a.text" }), json!({ "text": "[a-z]" })] {
        assert_eq!(oldest(&app, &wanted).await, None, "{wanted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_for_text_in_the_plain_text_and_in_the_html_as_it_is_shown() {
    let app = App::start().await;
    let html = "<style>.secret{}</style><p title=\"attribute\">Reset&nbsp;your <b>pass</b>word &amp; go</p>";
    send_both(&app, "both", "Ihr Kennwort:\r\n  jetzt\tändern", html, false).await;
    for text in ["kennwort: jetzt ÄNDERN", "reset your password & go", "Kennwort:\n\njetzt"] {
        assert_eq!(oldest(&app, &json!({ "text": text })).await.as_deref(), Some("both"), "{text}");
    }
    for text in ["secret", "attribute", "<b>", "&amp;", "both"] {
        assert_eq!(oldest(&app, &json!({ "text": text })).await, None, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_at_the_first_256_kib_of_text() {
    let app = App::start().await;
    let line = format!("{}\r\n", "x".repeat(70));
    let lines = |bytes: usize| line.repeat(bytes / line.len());
    app.deliver(ADDRESS, "late", &format!("{}needle", lines(300 << 10))).await;
    assert_eq!(oldest(&app, &json!({ "text": "needle" })).await, None);
    app.deliver(ADDRESS, "early", &format!("{}needle{}", lines(200 << 10), lines(200 << 10))).await;
    assert_eq!(oldest(&app, &json!({ "text": "needle" })).await.as_deref(), Some("early"));
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_mail_with_an_attachment() {
    let app = App::start().await;
    send_both(&app, "without", "text", "<p>text", false).await;
    send_both(&app, "with", "text", "<p>text", true).await;
    assert_eq!(oldest(&app, &json!({ "has": "attachment" })).await.as_deref(), Some("with"));
    assert_eq!(oldest(&app, &json!({ "has": ["attachment"] })).await.as_deref(), Some("with"));
    assert_eq!(oldest(&app, &json!({ "has": [] })).await.as_deref(), Some("without"));
    assert_eq!(oldest(&app, &json!({ "has": "attachment", "text": "other" })).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_contents_of_mail_that_arrives() {
    let app = App::start().await;
    let body = on_address(&json!({ "match": { "text": "code is" } }));
    let wait = app.start_mail_wait(&app.tenant.live, &body).await;
    app.deliver(ADDRESS, "other", "nothing").await;
    app.deliver(ADDRESS, "wanted", "Your CODE\r\nis 4711").await;
    assert_eq!(subject(&wait.await.unwrap().expect(200)), "wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_over_hostile_mail() {
    let app = App::start().await;
    let mut mails: Vec<Vec<u8>> = corpus::hostile_names().iter().map(|name| corpus::fixture(name)).collect();
    mails.extend([
        corpus::deep(500),
        corpus::deep_messages(200),
        corpus::many_parts(2_000),
        corpus::deep_html(100_000),
        corpus::address_flood(10_000),
        corpus::of_size(12 << 20),
    ]);
    for mail in &mails {
        send(&app, mail).await;
    }
    app.deliver(ADDRESS, "wanted", "the needle").await;
    // A search has a time, too; its cursor goes on.
    let mut since = "0".to_owned();
    for _ in 0..=mails.len() {
        let answer = look(&app, &json!({ "since": since, "match": { "text": "the needle" } })).await;
        if answer.status == 200 {
            assert_eq!(subject(&answer.json()), "wanted");
            return;
        }
        assert_eq!(answer.status, 204, "{}", answer.text());
        answer.header("x-next-since").clone_into(&mut since);
    }
    panic!("no hostile mail holds up the search");
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_mail_with_a_code_or_a_link_and_returns_them() {
    let app = App::start().await;
    app.deliver(ADDRESS, "News", "The weather in 2026 was fine.").await;
    app.deliver(ADDRESS, "Your code", "Your verification code is 482913.").await;
    let html =
        "<p>Please confirm your address:</p><a href=\"https://client.example/confirm?t=a1b2c3\">Confirm</a>";
    send_both(&app, "Confirm your address", "Please see the HTML.", html, true).await;
    for (has, expected) in [
        (json!("code"), Some("Your code")),
        (json!("link"), Some("Confirm your address")),
        (json!(["link", "attachment"]), Some("Confirm your address")),
        (json!(["code", "link"]), None),
        (json!(["code", "attachment"]), None),
    ] {
        assert_eq!(oldest(&app, &json!({ "has": has })).await.as_deref(), expected, "{has}");
    }
    let code = look(&app, &json!({ "since": "0", "match": { "has": "code" } })).await.expect(200);
    assert_eq!(code["codes"][0]["code"], "482913");
    assert_eq!(code["links"], json!([]));
    let link = look(&app, &json!({ "match": { "has": "link" }, "full": true })).await.expect(200);
    assert_eq!(link["links"][0]["url"], "https://client.example/confirm?t=a1b2c3");
    assert_eq!(link["links"][0]["kind"], "confirm");
    assert_eq!((&link["email"]["codes"], &link["email"]["links"]), (&link["codes"], &link["links"]));
}
