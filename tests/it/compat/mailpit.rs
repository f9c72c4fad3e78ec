//! API v1 of Mailpit.

use reqwest::Method;
use serde_json::json;
use tempmail_model::surface::DropInSurface;
use tempmail_tests::http::percent;

use super::{Surface, texts};

async fn mailpit() -> Surface {
    Surface::start(DropInSurface::Mailpit).await
}

/// The id of the newest message.
async fn newest(mailpit: &Surface) -> String {
    let list = mailpit.get("/api/v1/messages?limit=1").await.expect(200);
    list["messages"][0]["ID"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_everything_that_the_tenant_owns() {
    let mailpit = mailpit().await;
    let app = &mailpit.app;
    app.mailbox(Some(&app.tenant.pro), "own@inbox.localhost").await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    app.deliver("own@inbox.localhost", "two", "hello").await;
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!(texts(&list["messages"], "Subject"), ["two", "one"]);
    for (field, number) in [
        ("total", 2),
        ("unread", 2),
        ("count", 2),
        ("messages_count", 2),
        ("messages_unread", 2),
        ("start", 0),
    ] {
        assert_eq!(list[field], number, "{field}");
    }
    assert_eq!(list["tags"], json!([]));
    let one = &list["messages"][1];
    assert_eq!(one["From"], json!({"Name": "Café", "Address": "hello@mailer.example"}));
    let to = json!([{"Name": "Kim", "Address": "kim@shop.example"}, {"Name": "", "Address": "lee@elsewhere.example"}]);
    assert_eq!(one["To"], to);
    assert_eq!(one["Cc"], json!([{"Name": "", "Address": "copy@elsewhere.example"}]));
    assert_eq!((&one["Bcc"], &one["ReplyTo"][0]["Address"]), (&json!([]), &json!("help@mailer.example")));
    assert_eq!((&one["MessageID"], &one["Attachments"]), (&json!("m1@mailer.example"), &json!(1)));
    assert_eq!((&one["Read"], &one["Tags"], &one["Username"]), (&json!(false), &json!([]), &json!("")));
    assert!(one["Size"].as_i64().unwrap() > 500 && one["Created"].as_str().unwrap().ends_with('Z'));
    assert!(one["Snippet"].as_str().unwrap().starts_with("Your verification code"));
    let two = &list["messages"][0];
    assert_eq!(two["Bcc"], json!([{"Name": "", "Address": "own@inbox.localhost"}]), "no field names it");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_pages_by_offset() {
    let mailpit = mailpit().await;
    for number in 0..5 {
        mailpit.app.deliver("kim@shop.example", &format!("m{number}"), "").await;
    }
    let page = mailpit.get("/api/v1/messages?start=1&limit=2").await.expect(200);
    assert_eq!(texts(&page["messages"], "Subject"), ["m3", "m2"]);
    assert_eq!((&page["start"], &page["total"]), (&json!(1), &json!(5)));
    assert_eq!(mailpit.get("/api/v1/messages?start=9").await.expect(200)["messages"], json!([]));
    for wrong in ["start=-1", "limit=x", "start=1.5"] {
        assert_eq!(mailpit.get(&format!("/api/v1/messages?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_messages_by_id_by_search_and_all() {
    let mailpit = mailpit().await;
    for subject in ["one", "two", "three"] {
        mailpit.app.deliver("kim@shop.example", subject, "").await;
    }
    let put = async |body| {
        let answer = mailpit.send(Method::PUT, "/api/v1/messages", &body).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        mailpit.get("/api/v1/messages").await.expect(200)["unread"].as_i64().unwrap()
    };
    assert_eq!(put(json!({"IDs": [newest(&mailpit).await, "unknown"], "Read": true})).await, 2);
    assert_eq!(put(json!({"Search": "subject:two", "Read": true})).await, 1);
    assert_eq!(put(json!({"Read": true})).await, 0);
    assert_eq!(put(json!({"IDs": [newest(&mailpit).await]})).await, 1);
    let answer = mailpit.request(Method::PUT, "/api/v1/messages").send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(mailpit.get("/api/v1/messages").await.expect(200)["unread"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_messages_by_id_and_all() {
    let mailpit = mailpit().await;
    for subject in ["one", "two", "three"] {
        mailpit.app.deliver("kim@shop.example", subject, "").await;
    }
    let ids = json!({"IDs": [newest(&mailpit).await, "unknown"]});
    assert_eq!(mailpit.send(Method::DELETE, "/api/v1/messages", &ids).await.text(), "ok");
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!(texts(&list["messages"], "Subject"), ["two", "one"]);
    assert_eq!(mailpit.delete("/api/v1/messages").await.text(), "ok");
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!((&list["messages"], &list["total"]), (&json!([]), &json!(0)));
    assert_eq!(mailpit.get("/api/v1/message/latest").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn says_what_the_server_is() {
    let mailpit = mailpit().await;
    mailpit.app.deliver("kim@shop.example", "one", "").await;
    let info = mailpit.get("/api/v1/info").await.expect(200);
    assert_eq!((&info["Messages"], &info["Unread"]), (&json!(1), &json!(1)));
    assert!(info["Version"].as_str().unwrap().starts_with("tempmail "));
    assert_eq!(mailpit.get("/api/v1/tags").await.expect(200), json!([]));
    assert_eq!(mailpit.get("/api/v1/webui").await.expect(200)["MessageRelay"]["Enabled"], false);
    for (method, path) in [
        (Method::POST, "/api/v1/send"),
        (Method::GET, "/api/v1/message/latest/html-check"),
        (Method::GET, "/api/v1/chaos"),
        (Method::POST, "/api/v1/message/latest/release"),
    ] {
        assert_eq!(mailpit.request(method, path).send().await.status, 404, "{path}");
    }
    assert_eq!(mailpit.request(Method::PUT, "/api/v1/tags").send().await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_messages_by_every_word() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "Hello World").await;
    mailpit.app.deliver("lee@shop.example", "Invoice", "please pay 10:30 today").await;
    let search = async |query: &str| {
        let found = mailpit.get(&format!("/api/v1/search?query={}", percent(query))).await.expect(200);
        assert_eq!(found["messages_count"], found["messages"].as_array().unwrap().len(), "{query}");
        assert_eq!(found["total"], 2);
        texts(&found["messages"], "Subject").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (hello, invoice) = (vec!["Hello World"], vec!["Invoice"]);
    for (query, expected) in [
        ("from:hello@mailer.example", hello.clone()),
        ("from:café", hello.clone()),
        ("from:CAFE\u{301}", hello.clone()),
        ("to:kim@shop.example", hello.clone()),
        ("to:lee@elsewhere.example", hello.clone()),
        ("to:shop.example", vec!["Invoice", "Hello World"]),
        ("cc:copy", hello.clone()),
        ("reply-to:help", hello.clone()),
        ("addressed:copy@", hello.clone()),
        ("bcc:lee@shop.example", invoice.clone()),
        ("subject:world", hello.clone()),
        ("subject:\"hello world\"", hello.clone()),
        ("subject:\"world hello\"", vec![]),
        ("message-id:m1@mailer.example", hello.clone()),
        ("has:attachment", hello.clone()),
        ("has:inline", hello.clone()),
        ("is:unread", vec!["Invoice", "Hello World"]),
        ("is:read", vec![]),
        ("tag:x", vec![]),
        ("-tag:x invoice", invoice.clone()),
        ("is:tagged", vec![]),
        ("482913", hello.clone()),
        ("\"please pay\"", invoice.clone()),
        ("pay -\"10:30 today\"", vec![]),
        ("10:30", invoice.clone()),
        ("-has:attachment", invoice.clone()),
        ("!subject:invoice", hello.clone()),
        ("larger:500 smaller:1M", hello.clone()),
        ("after:2020-01-01", vec!["Invoice", "Hello World"]),
        ("before:2020-01-01", vec![]),
        ("from:nobody subject:world", vec![]),
    ] {
        assert_eq!(search(query).await, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_query_that_is_none() {
    let mailpit = mailpit().await;
    for (query, word) in [
        ("", "query"),
        ("query=before:yesterday", "before"),
        ("query=is:old", "is:"),
        ("query=has:stamps", "has:"),
        ("query=larger:x", "larger"),
        ("query=x&tz=Nowhere", "tz"),
        (&format!("query={}", "a+".repeat(40)), "32 words"),
        (&format!("query={}", "a".repeat(300)), "256 characters"),
    ] {
        let answer = mailpit.get(&format!("/api/v1/search?{query}")).await;
        assert!(
            answer.status == 400 && answer.text().contains(word),
            "{query}: {answer:?} {}",
            answer.text()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_up_to_200_messages_and_goes_on_when_it_is_asked_again() {
    let mailpit = mailpit().await;
    for _ in 0..203 {
        mailpit.app.deliver("kim@shop.example", "one", &format!("{}needle", "x".repeat(1_000))).await;
    }
    for found in [200, 203] {
        let list = mailpit.get("/api/v1/search?query=needle&limit=1").await.expect(200);
        assert_eq!((&list["messages_count"], &list["total"]), (&json!(found), &json!(203)));
        assert_eq!(list["messages"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_what_it_finds() {
    let mailpit = mailpit().await;
    for subject in ["one", "two", "one"] {
        mailpit.app.deliver("kim@shop.example", subject, "").await;
    }
    assert_eq!(mailpit.delete("/api/v1/search?query=subject:one").await.text(), "ok");
    let list = mailpit.get("/api/v1/messages").await.expect(200);
    assert_eq!(texts(&list["messages"], "Subject"), ["two"]);
    assert_eq!(mailpit.delete("/api/v1/search").await.status, 400);
    let empty = mailpit.get("/api/v1/search?query=subject:one").await.expect(200);
    assert_eq!((&empty["messages_count"], &empty["messages"]), (&json!(0), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_message_in_full_and_marks_it_as_read() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    let id = newest(&mailpit).await;
    let message = mailpit.get(&format!("/api/v1/message/{id}")).await.expect(200);
    assert_eq!((&message["ID"], &message["MessageID"]), (&json!(id), &json!("m1@mailer.example")));
    assert_eq!(message["From"]["Name"], "Café");
    assert_eq!(message["To"][0]["Address"], "kim@shop.example");
    assert_eq!(
        (&message["ReturnPath"], &message["Subject"]),
        (&json!("bounce@mailer.example"), &json!("one"))
    );
    assert_eq!(message["Date"], "2026-11-24T09:00:00.000Z");
    assert_eq!(message["ListUnsubscribe"]["Links"], json!(["https://mailer.example/u"]));
    assert!(message["Text"].as_str().unwrap().starts_with("Your verification code is 482913."));
    assert!(message["HTML"].as_str().unwrap().contains("<script>alert(1)</script>"), "as received");
    let [inline, attached] = [&message["Inline"][0], &message["Attachments"][0]];
    assert_eq!((&inline["FileName"], &inline["ContentID"]), (&json!("pic.png"), &json!("pic@m")));
    assert_eq!((&attached["ContentType"], &attached["Size"]), (&json!("application/pdf"), &json!(5)));
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(attached["Checksums"]["SHA256"], sha256);
    assert_eq!(mailpit.get("/api/v1/messages").await.expect(200)["messages"][0]["Read"], true);
    assert_eq!(mailpit.get("/api/v1/message/latest").await.expect(200)["ID"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_header_fields_raw_data_and_parts() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    let id = newest(&mailpit).await;
    let headers = mailpit.get(&format!("/api/v1/message/{id}/headers")).await.expect(200);
    assert_eq!(headers["Message-Id"], json!(["<m1@mailer.example>"]));
    assert_eq!(headers["From"], json!(["=?utf-8?q?Caf=C3=A9?= <hello@mailer.example>"]));
    let raw = mailpit.get(&format!("/api/v1/message/{id}/raw")).await;
    assert_eq!((raw.status, raw.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert!(raw.text().starts_with("Return-Path: <bounce@mailer.example>") && raw.text().contains("--m--"));
    assert!(raw.header("content-security-policy").contains("sandbox"));
    let file = mailpit.get(&format!("/api/v1/message/{id}/raw?dl=1")).await;
    assert!(file.header("content-disposition").starts_with("attachment"));
    assert_eq!(file.body, raw.body);
    let message = mailpit.get(&format!("/api/v1/message/{id}")).await.expect(200);
    let part = |element: &serde_json::Value| element["PartID"].as_str().unwrap().to_owned();
    let (image, pdf) = (part(&message["Inline"][0]), part(&message["Attachments"][0]));
    let answer = mailpit.get(&format!("/api/v1/message/{id}/part/{pdf}")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    assert_eq!(answer.header("content-type"), "application/pdf");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.header("content-security-policy").starts_with("sandbox"));
    let thumbnail = mailpit.get(&format!("/api/v1/message/{id}/part/{image}/thumb")).await;
    assert_eq!((thumbnail.status, thumbnail.text().as_str()), (200, "image"));
    for missing in [&format!("{pdf}/thumb"), "9", "x", "-1"] {
        let answer = mailpit.get(&format!("/api/v1/message/{id}/part/{missing}")).await;
        assert_eq!(answer.status, 404, "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_what_is_no_message() {
    let mailpit = mailpit().await;
    for id in ["x", "latest", "0191d3a4-0000-7000-8000-000000000000", "%ff"] {
        for suffix in ["", "/headers", "/raw", "/part/0"] {
            let answer = mailpit.get(&format!("/api/v1/message/{id}{suffix}")).await;
            assert_eq!((answer.status, answer.media_type()), (404, "text/plain"), "{id}{suffix}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_text_of_a_message_that_has_html_only() {
    let mailpit = mailpit().await;
    let raw = b"Subject: x\r\nContent-Type: text/html\r\n\r\n<p>Hello <b>there</b></p><p style=display:none>not</p>";
    super::deliver(&mailpit.app, "kim@shop.example", raw).await;
    let message = mailpit.get("/api/v1/message/latest").await.expect(200);
    let text = message["Text"].as_str().unwrap();
    assert!(text.contains("Hello there") && !text.contains("not") && !text.contains('<'), "{text}");
    assert_eq!(message["From"], json!(null));
    assert!(mailpit.get("/view/latest.txt").await.text().contains("Hello there"));
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_bodies_without_letting_them_run() {
    let mailpit = mailpit().await;
    mailpit.deliver_whole("kim@shop.example", "one").await;
    let id = newest(&mailpit).await;
    let html = mailpit.get(&format!("/view/{id}.html")).await;
    assert_eq!((html.status, html.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(html.text().contains("<script>alert(1)</script>"), "as received");
    let policy = html.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none'") && !policy.contains("allow-"), "{policy}");
    assert_eq!(html.header("x-content-type-options"), "nosniff");
    assert_eq!(html.header("cross-origin-resource-policy"), "same-origin");
    assert_eq!(mailpit.get(&format!("//view/{id}.html")).await.body, html.body, "as clients join it");
    let text = mailpit.get(&format!("/view/{id}.txt")).await;
    assert_eq!((text.status, text.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert!(text.text().starts_with("Your verification code is 482913."));
    let embedded = mailpit.get("/view/latest.html?embed=1").await;
    assert!(embedded.status == 200 && !embedded.text().contains("script"), "{}", embedded.text());
    assert!(embedded.text().contains("data:image/png;base64,"), "{}", embedded.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_without_html_or_message() {
    let mailpit = mailpit().await;
    mailpit.app.deliver("kim@shop.example", "one", "text").await;
    for path in
        ["/view/latest.html", "/view/latest.html?embed=1", "/view/x.txt", "/view/latest", "/view/latest.pdf"]
    {
        assert_eq!(mailpit.get(path).await.status, 404, "{path}");
    }
}
