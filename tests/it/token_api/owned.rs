//! `GET /v1/me` and `GET /v1/domain/<domain>`: long-polls across everything that a tenant owns, and under a domain.

use tempmail_model::token::TokenKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Tenant};

use super::subjects;

const ME: &str = "/v1/me";

const BOX: &str = "box@inbox.localhost";

/// A tenant with a mailbox and a domain, beside other tenants with the same.
async fn owned() -> (App, Tenant) {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "free@inbox.localhost").await;
    (app, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_mail_of_mailboxes_and_verified_domains_only() {
    let (app, other) = owned().await;
    app.mailbox(Some(&app.tenant.pro), "box@ours.example").await;
    for (address, subject) in [
        (BOX, "1"),
        ("theirs@inbox.localhost", "theirs 1"),
        ("box+tag@inbox.localhost", "2"),
        ("any.name@theirs.example", "theirs 2"),
        ("any.name@ours.example", "3"),
        ("free@inbox.localhost", "free"),
        ("box@ours.example", "4"),
        ("shared@inbox.localhost", "shared"),
    ] {
        app.deliver(address, subject, "").await;
    }
    let answer = app.get(ME).await.expect(200);
    assert_eq!(subjects(&answer["emails"]), ["4", "3", "2", "1"], "newest first");
    assert_eq!(answer["emails"][1]["address"], "any.name@ours.example");
    let theirs = app.get_as(&other.live, ME).await.expect(200);
    assert_eq!(subjects(&theirs["emails"]), ["theirs 2", "theirs 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_after_since_oldest_page_first_and_newest_mail_first() {
    let (app, _) = owned().await;
    app.deliver(BOX, "0", "").await;
    let mut since = app.get(ME).await.expect(200)["next_since"].as_str().unwrap().to_owned();
    for number in 1..=5 {
        app.deliver(if number % 2 == 0 { BOX } else { "a@ours.example" }, &format!("{number}"), "").await;
        app.deliver("theirs@inbox.localhost", "x", "").await;
    }
    for expected in [vec!["2", "1"], vec!["4", "3"], vec!["5"]] {
        let answer = app.get(&format!("{ME}?limit=2&since={since}")).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), expected);
        answer["next_since"].as_str().unwrap().clone_into(&mut since);
    }
    let newest = app.get(&format!("{ME}?limit=2")).await.expect(200);
    assert_eq!(subjects(&newest["emails"]), ["5", "4"], "without a cursor the newest");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_cursor_in_every_scope_of_its_tenant() {
    let (app, other) = owned().await;
    let paths = [ME, "/v1/domain/ours.example", "/v1/inbox/a@ours.example"];
    for from in paths {
        app.deliver("a@ours.example", "met", "").await;
        let since = app.get(from).await.expect(200)["next_since"].as_str().unwrap().to_owned();
        app.deliver("a@ours.example", "new", "").await;
        for to in paths {
            let answer = app.get(&format!("{to}?since={since}")).await.expect(200);
            assert_eq!(subjects(&answer["emails"]), ["new"], "{from} to {to}");
        }
        let foreign = app.get_as(&other.live, &format!("{ME}?since={since}")).await;
        foreign.assert_v1_error(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_count_matching_mails() {
    let (app, _) = owned().await;
    app.deliver(BOX, "before", "").await;
    let since = app.get(ME).await.expect(200)["next_since"].as_str().unwrap().to_owned();
    let path = format!("{ME}?count=3&limit=2&subject=wanted&since={since}");
    let counted = app.start_long_poll(&app.tenant.live, &path).await;
    for (address, subject) in [
        (BOX, "WANTED 1"),
        ("a@ours.example", "other"),
        ("b@ours.example", "wanted 2"),
        ("theirs@inbox.localhost", "wanted x"),
        (BOX, "is Wanted 3"),
    ] {
        app.deliver(address, subject, "").await;
    }
    let answer = within_deadline("three that match", counted).await.unwrap().expect(200);
    assert_eq!(subjects(&answer["emails"]), ["wanted 2", "WANTED 1"], "the oldest two, newest first");
    let since = answer["next_since"].as_str().unwrap();
    let rest = app.get(&format!("{ME}?since={since}&from=ADA%20%3C")).await.expect(200);
    assert_eq!(subjects(&rest["emails"]), ["is Wanted 3"]);
    let both = app.get(&format!("{ME}?from=client.example&subject=OTHER")).await.expect(200);
    assert_eq!(subjects(&both["emails"]), ["other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wakes_for_mailboxes_and_domains_created_while_waiting() {
    let app = App::start().await;
    let wait = app.start_long_poll(&app.tenant.live, ME).await;
    app.mailbox(Some(&app.tenant.pro), "late@inbox.localhost").await;
    app.deliver("late@inbox.localhost", "to the mailbox", "").await;
    let answer = within_deadline("the wait returns", wait).await.unwrap().expect(200);
    assert_eq!(subjects(&answer["emails"]), ["to the mailbox"]);

    let since = answer["next_since"].as_str().unwrap();
    let wait = app.start_long_poll(&app.tenant.live, &format!("{ME}?since={since}")).await;
    app.custom_domain(&app.tenant, "late.example").await;
    app.deliver("any@late.example", "to the domain", "").await;
    let answer = within_deadline("the wait returns", wait).await.unwrap().expect(200);
    assert_eq!(subjects(&answer["emails"]), ["to the domain"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn omits_deleted_mail_mailboxes_and_domains() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), BOX).await;
    let removed = app.mailbox(Some(&app.tenant.pro), "removed@inbox.localhost").await;
    let lost = app.custom_domain(&app.tenant, "lost.example").await;
    app.custom_domain(&app.tenant, "kept.example").await;
    for address in [BOX, "removed@inbox.localhost", "a@lost.example", "a@kept.example", "b@kept.example"] {
        app.deliver(address, address, "").await;
    }
    app.delete_mailbox(&removed).await;
    app.end_verification(lost).await;
    assert_eq!(app.delete("/v1/inbox/a@kept.example").await.status, 204);
    let answer = app.get(ME).await.expect(200);
    assert_eq!(subjects(&answer["emails"]), ["b@kept.example", BOX]);
    // Neither before nor after the worker purges it.
    let wait = app.start_long_poll(&app.tenant.live, &format!("{ME}?count=3")).await;
    let id = answer["emails"][0]["id"].as_str().unwrap();
    assert_eq!(app.delete(&format!("/v1/email/{id}")).await.status, 204);
    app.deliver(BOX, "2", "").await;
    app.deliver(BOX, "3", "").await;
    app.deliver(BOX, "4", "").await;
    let answer = within_deadline("three that are left", wait).await.unwrap().expect(200);
    assert!(subjects(&answer["emails"]).iter().all(|subject| *subject != "b@kept.example"));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_token_to_one_wait_of_any_kind_without_an_address_limit() {
    let (app, _) = owned().await;
    let kinds = [ME, "/v1/domain/ours.example", "/v1/inbox/quiet@ours.example"];
    for held in kinds {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        let wait = app.start_long_poll(&token, held).await;
        for other in kinds {
            let busy = app.get_as(&token, other).await;
            busy.assert_v1_error(429, "token_busy");
            assert!(!busy.header("retry-after").is_empty());
        }
        wait.abort();
    }
    let mut waits = Vec::new();
    for path in &kinds[..2] {
        for _ in 0..12 {
            let token = app.token(&app.tenant, TokenKind::Live).await;
            waits.push(app.start_long_poll(&token, path).await);
        }
    }
    app.deliver("any@ours.example", "for all", "").await;
    for wait in waits {
        let answer = within_deadline("each of them is answered", wait).await.unwrap().expect(200);
        assert_eq!(subjects(&answer["emails"]), ["for all"]);
    }
}

const DOMAIN: &str = "/v1/domain/ours.example";

#[tokio::test(flavor = "multi_thread")]
async fn returns_mail_of_every_address_of_the_domain() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.custom_domain(&app.tenant, "sub.ours.example").await;
    app.custom_domain(&app.tenant, "other.example").await;
    app.mailbox(Some(&app.tenant.pro), "box@ours.example").await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    for (address, subject) in [
        ("any.name@ours.example", "1"),
        ("any.name@sub.ours.example", "x"),
        ("box@ours.example", "2"),
        ("box@inbox.localhost", "x"),
        ("box+tag@ours.example", "3"),
        ("any.name@other.example", "x"),
        ("\"odd@local\"@other.example", "x"),
    ] {
        let message = tempmail_tests::smtp::message("Ada <ada@client.example>", subject, "");
        tempmail_tests::send_mail(app.smtp(), "ada@client.example", address, &message).await;
    }
    for path in [DOMAIN, "/v1/domain/OURS.example.", "/v1/domain/%6Furs.example"] {
        let answer = app.get(path).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), ["3", "2", "1"], "{path}");
    }
    let newest = app.get(&format!("{DOMAIN}?limit=1&subject=2")).await.expect(200);
    assert_eq!(subjects(&newest["emails"]), ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wakes_only_for_mail_of_the_domain() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.custom_domain(&app.tenant, "other.example").await;
    let wait = app.start_long_poll(&app.tenant.live, &format!("{DOMAIN}?count=2")).await;
    for address in ["a@ours.example", "a@other.example", "b@ours.example"] {
        app.deliver(address, address, "").await;
    }
    let answer = within_deadline("two of the domain", wait).await.unwrap().expect(200);
    assert_eq!(subjects(&answer["emails"]), ["b@ours.example", "a@ours.example"]);
    // Its cursor is after the skipped mail of the other domain.
    app.deliver("c@other.example", "later", "").await;
    let since = answer["next_since"].as_str().unwrap();
    let me = app.get(&format!("/v1/me?since={since}")).await.expect(200);
    assert_eq!(subjects(&me["emails"]), ["later"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_or_unverified_domain_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.custom_domain(&other, "theirs.example").await;
    let lost = app.custom_domain(&app.tenant, "lost.example").await;
    app.end_verification(lost).await;
    app.domain(&app.tenant, "pending.example").await;
    app.domain(&app.tenant, "theirs.example").await;
    let nothing = app.get("/v1/domain/nothing.example").await;
    nothing.assert_v1_error(404, "not_found");
    for name in ["theirs.example", "lost.example", "pending.example", "inbox.localhost", "localhost"] {
        let answer = app.get(&format!("/v1/domain/{name}")).await;
        assert_eq!(answer.appearance(), nothing.appearance(), "{name}");
    }
    for name in ["a@b.example", "a..example", "-a.example", "%00", "%FF", "a%20b.example"] {
        app.get(&format!("/v1/domain/{name}")).await.assert_v1_error(400, "invalid_request");
    }
}
