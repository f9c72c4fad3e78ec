//! `POST /v1/wait`: waits for one mail that matches.

mod contents;
mod rights;
mod start;

use std::time::Duration;

use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Response, rows};

const ADDRESS: &str = "ship@inbox.localhost";

/// A wait on [`ADDRESS`] with further fields.
fn on_address(fields: &Value) -> Value {
    let mut body = json!({ "address": ADDRESS });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

/// The answer to a look at [`ADDRESS`] that does not wait.
async fn look(app: &App, fields: &Value) -> Response {
    let mut body = on_address(fields);
    body["timeout"] = json!(0);
    app.wait_for_email(&app.tenant.live, &body).await
}

/// The subject of a mail that was found.
fn subject(answer: &Value) -> &str {
    answer["email"]["subject"].as_str().expect("the mail has a subject")
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_summary_of_a_mail_that_arrives() {
    let app = App::start().await;
    let wait = app.start_mail_wait(&app.tenant.live, &on_address(&json!({}))).await;
    app.deliver(ADDRESS, "Your code", "Your code is 4711.").await;
    let answer = within_deadline("the mail", wait).await.unwrap().expect(200);
    let listed = app.emails(ADDRESS).await;
    assert_eq!(answer["email"], listed[0], "the summary of the long-polls");
    assert_eq!(answer["codes"][0]["code"], "4711");
    let since = answer["next_since"].as_str().unwrap();
    app.deliver(ADDRESS, "next", "").await;
    assert_eq!(subject(&look(&app, &json!({ "since": since })).await.expect(200)), "next");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_the_whole_message_with_full() {
    let app = App::start().await;
    app.deliver(ADDRESS, "whole", "All of it.").await;
    let answer = look(&app, &json!({ "full": true })).await.expect(200);
    let id = answer["email"]["id"].as_str().unwrap();
    assert_eq!(answer["email"], app.get(&format!("/v1/email/{id}")).await.expect(200));
    assert_eq!(answer["email"]["text"], "All of it.\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_on_a_domain_or_on_everything_owned() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let since = app.cursor_as(&app.tenant.live).await;
    let second = app.token(&app.tenant, TokenKind::Live).await;
    let of_domain = json!({ "domain": "Ours.Example.", "since": since });
    let domain = app.start_mail_wait(&app.tenant.live, &of_domain).await;
    let all = app.start_mail_wait(&second, &json!({ "all": true, "since": since })).await;
    for address in ["shared@inbox.localhost", "free@inbox.localhost", "any@theirs.example"] {
        app.deliver(address, "not owned", "").await;
    }
    app.deliver("box@inbox.localhost", "to the mailbox", "").await;
    app.deliver("any@ours.example", "to the domain", "").await;
    let domain = within_deadline("mail of the domain", domain).await.unwrap().expect(200);
    assert_eq!(subject(&domain), "to the domain");
    let all = within_deadline("mail that is owned", all).await.unwrap().expect(200);
    assert_eq!(subject(&all), "to the mailbox");
    let later = json!({ "all": true, "since": all["next_since"], "timeout": 0 });
    assert_eq!(subject(&app.wait_for_email(&second, &later).await.expect(200)), "to the domain");
}

#[tokio::test]
async fn returns_204_with_a_cursor_after_the_timeout() {
    let app = App::start().await;
    let body = on_address(&json!({ "match": { "subject": "absent" }, "timeout": 300 }));
    let mut wait = app.start_mail_wait(&app.tenant.live, &body).await;
    app.deliver(ADDRESS, "other", "").await;
    app.jump(Duration::from_secs(290)).await;
    assert!(!wait.is_finished(), "nothing cuts it before");
    let ended = app.jump_until("the wait ends", Duration::from_secs(15), || {
        let is_finished = wait.is_finished();
        async move { is_finished.then_some(()) }
    });
    ended.await;
    let answer = (&mut wait).await.unwrap();
    assert_eq!(answer.status, 204);
    let since = answer.header("x-next-since").to_owned();
    app.deliver(ADDRESS, "after the timeout", "").await;
    // The cursor may be before the other mail: a wait that ends does not look any more while its process is stale.
    let next = json!({ "since": since, "match": { "subject": "timeout" } });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "after the timeout");
}

#[tokio::test]
async fn waits_for_60_s_by_default() {
    let app = App::start().await;
    let mut wait = app.start_mail_wait(&app.tenant.live, &on_address(&json!({ "timeout": null }))).await;
    app.jump(Duration::from_secs(50)).await;
    assert!(!wait.is_finished());
    app.jump_until("the wait ends", Duration::from_secs(11), || {
        let is_finished = wait.is_finished();
        async move { is_finished.then_some(()) }
    })
    .await;
    assert_eq!((&mut wait).await.unwrap().status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_once_with_a_timeout_of_zero() {
    let app = App::start().await;
    let nothing = look(&app, &json!({})).await;
    assert_eq!(nothing.status, 204);
    app.deliver(ADDRESS, "there", "").await;
    let since = nothing.header("x-next-since");
    assert_eq!(subject(&look(&app, &json!({ "since": since })).await.expect(200)), "there");
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_exactly_one_scope() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    let since = app.cursor_as(&app.tenant.live).await;
    for scope in [
        json!({}),
        json!({ "all": false }),
        json!({ "address": null }),
        json!({ "address": ADDRESS, "domain": "ours.example" }),
        json!({ "address": ADDRESS, "all": true }),
        json!({ "domain": "ours.example", "all": true }),
    ] {
        let mut body = scope.clone();
        body["since"] = json!(since);
        app.wait_for_email(&app.tenant.live, &body).await.assert_v1_error(400, "invalid_request");
    }
    for scope in
        [json!({ "address": ADDRESS, "domain": null, "all": false }), json!({ "all": true, "address": null })]
    {
        let mut body = scope.clone();
        body["since"] = json!(since);
        body["timeout"] = json!(0);
        assert_eq!(app.wait_for_email(&app.tenant.live, &body).await.status, 204, "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_an_empty_list_for_no_match() {
    let app = App::start().await;
    app.deliver(ADDRESS, "here", "").await;
    let answer = app.wait_for_email(&app.tenant.live, &on_address(&json!({"match": []}))).await;
    assert_eq!(answer.expect(200)["email"]["subject"], "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_invalid_fields_and_ignores_unknown_ones() {
    let app = App::start().await;
    app.deliver(ADDRESS, "here", "").await;
    let long = "é".repeat(257);
    for (field, value) in [
        ("since", json!("nonsense")),
        ("since", json!("")),
        ("since", json!(0)),
        ("after", json!("yesterday")),
        ("after", json!("2026-11-21")),
        ("timeout", json!(-1)),
        ("timeout", json!(301)),
        ("timeout", json!(1.5)),
        ("timeout", json!("5")),
        ("full", json!("yes")),
        ("match", json!("code")),
        ("match", json!(["code"])),
        ("match", json!({ "subject": long })),
        ("match", json!({ "from": 7 })),
        ("match", json!({ "to": ["a"] })),
        ("match", json!({ "text": {} })),
        ("match", json!({ "has": "picture" })),
        ("match", json!({ "has": ["attachment", 1] })),
        ("match", json!({ "has": {} })),
    ] {
        let body = on_address(&json!({ field: value }));
        let answer = app.wait_for_email(&app.tenant.live, &body).await;
        assert_eq!(answer.status, 400, "{field}: {value}");
        answer.assert_v1_error(400, "invalid_request");
    }
    let lenient =
        json!({ "unknown": [1], "match": { "unknown": true, "from": null, "has": [] }, "after": null });
    assert_eq!(subject(&look(&app, &lenient).await.expect(200)), "here");
    let longest = json!({ "match": { "subject": "é".repeat(256) } });
    assert_eq!(look(&app, &longest).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_404_for_what_the_tenant_may_not_read_and_400_for_what_is_malformed() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(Some(&other.pro), "box@inbox.localhost").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let ask = async |field: &str, value: &str| {
        let body = json!({ field: value, "since": "0", "timeout": 0 });
        app.wait_for_email(&app.tenant.live, &body).await
    };
    let missing = ask("address", "a@elsewhere.example").await;
    missing.assert_v1_error(404, "not_found");
    for address in ["box@inbox.localhost", "free@inbox.localhost", "a@theirs.example", "a@[127.0.0.1]"] {
        assert_eq!(ask("address", address).await.appearance(), missing.appearance(), "{address}");
    }
    for domain in ["theirs.example", "inbox.localhost", "elsewhere.example"] {
        assert_eq!(ask("domain", domain).await.appearance(), missing.appearance(), "{domain}");
    }
    for (field, value) in [
        ("address", "ship"),
        ("address", "a b@inbox.localhost"),
        ("domain", "a..example"),
        ("domain", "a@b.example"),
    ] {
        ask(field, value).await.assert_v1_error(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn is_the_one_wait_of_a_token() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    let since = app.cursor_as(&app.tenant.live).await;
    let bodies: [Value; 3] = [
        on_address(&json!({})),
        json!({ "domain": "ours.example", "since": since }),
        json!({ "all": true, "since": since }),
    ];
    for held in &bodies {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        let wait = app.start_mail_wait(&token, held).await;
        for other in &bodies {
            let busy = app.wait_for_email(&token, other).await;
            busy.assert_v1_error(429, "token_busy");
            assert!(!busy.header("retry-after").is_empty());
        }
        app.get_as(&token, "/v1/me").await.assert_v1_error(429, "token_busy");
        wait.abort();
    }
    let long_poll = app.start_long_poll(&app.tenant.live, "/v1/me").await;
    app.wait_for_email(&app.tenant.live, &bodies[0]).await.assert_v1_error(429, "token_busy");
    long_poll.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_as_a_wait_on_its_address() {
    let app = App::start().await;
    let body = on_address(&json!({}));
    let mut waits = Vec::new();
    for number in 0..10 {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        waits.push(match number % 2 {
            0 => app.start_mail_wait(&token, &body).await,
            _ => app.start_long_poll(&token, &format!("/v1/inbox/{ADDRESS}")).await,
        });
    }
    let eleventh = app.token(&app.tenant, TokenKind::Live).await;
    app.wait_for_email(&eleventh, &body).await.assert_v1_error(429, "addr_busy");
    let elsewhere = json!({ "address": "boat@inbox.localhost", "timeout": 0 });
    assert_eq!(app.wait_for_email(&eleventh, &elsewhere).await.status, 204);
    app.deliver(ADDRESS, "for all", "").await;
    for wait in waits {
        assert_eq!(within_deadline("each is answered", wait).await.unwrap().status, 200);
    }
    assert_eq!(app.wait_for_email(&eleventh, &body).await.status, 200, "the places are free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_its_place_before_the_answer_is_written() {
    let app = App::start().await;
    let mut since = app.cursor_as(&app.tenant.live).await;
    for number in 1..=20 {
        let body = on_address(&json!({ "since": since }));
        let (answer, _) = tokio::join!(app.wait_for_email(&app.tenant.live, &body), async {
            app.deliver(ADDRESS, &number.to_string(), "").await
        });
        let answer = answer.expect(200);
        assert_eq!(subject(&answer), number.to_string());
        since = answer["next_since"].as_str().unwrap().to_owned();
    }
}

/// Messages that a request scans.
const SCANNED: i64 = 10_000;

/// Messages whose contents a request looks at.
const READ: i64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn returns_204_with_the_cursor_after_10_000_messages() {
    let app = App::start().await;
    app.deliver(ADDRESS, "other", "").await;
    rows::copy_newest_message(&app.pool, ADDRESS, SCANNED - 1).await;
    app.deliver(ADDRESS, "wanted", "").await;
    let wanted = json!({ "since": "0", "match": { "subject": "wanted" }, "timeout": 300 });
    let first = app.wait_for_email(&app.tenant.live, &on_address(&wanted)).await;
    assert_eq!(first.status, 204, "at once, whatever the timeout");
    let next = json!({ "since": first.header("x-next-since"), "match": { "subject": "wanted" } });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "wanted");

    let path = format!("/v1/inbox/{ADDRESS}?subject=wanted&since");
    let long_poll = app.get(&format!("{path}=0")).await;
    assert_eq!(long_poll.status, 204, "at once, too");
    let answer = app.get(&format!("{path}={}", long_poll.header("x-next-since"))).await.expect(200);
    assert_eq!(answer["emails"][0]["subject"], "wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_204_with_the_cursor_after_200_messages_whose_contents_were_looked_at() {
    let app = App::start().await;
    app.deliver(ADDRESS, "other", "nothing").await;
    rows::copy_newest_message(&app.pool, ADDRESS, READ - 1).await;
    app.deliver(ADDRESS, "cheap", "nothing").await;
    app.deliver(ADDRESS, "wanted", "the needle").await;
    let wanted = json!({ "text": "needle" });
    let body = json!({ "since": "0", "match": wanted, "timeout": 300 });
    let first = app.wait_for_email(&app.tenant.live, &on_address(&body)).await;
    assert_eq!(first.status, 204, "at once, whatever the timeout");
    let next = json!({ "since": first.header("x-next-since"), "match": wanted });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "wanted");

    // What costs little is compared first, so only few contents are looked at.
    let cheap = json!({ "since": "0", "match": { "text": "needle", "subject": "wanted" } });
    assert_eq!(subject(&look(&app, &cheap).await.expect(200)), "wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_at_the_newest_messages_first_without_a_start() {
    let app = App::start().await;
    app.deliver(ADDRESS, "old", "the needle").await;
    app.deliver(ADDRESS, "other", "nothing").await;
    rows::copy_newest_message(&app.pool, ADDRESS, READ - 2).await;
    let wanted = json!({ "match": { "text": "needle" } });
    assert_eq!(subject(&look(&app, &wanted).await.expect(200)), "old");
    app.deliver(ADDRESS, "other", "nothing").await;
    let none = look(&app, &wanted).await;
    assert_eq!(none.status, 204);
    app.deliver(ADDRESS, "new", "the needle").await;
    let next = json!({ "since": none.header("x-next-since"), "match": { "text": "needle" } });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "new");
}
