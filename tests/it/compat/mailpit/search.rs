//! `/api/v1/search`

use serde_json::json;
use tempmail_tests::http::percent;

use super::mailpit;
use crate::compat::texts;

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
