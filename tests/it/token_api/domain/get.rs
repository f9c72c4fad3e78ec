//! `GET /v1/domain/<domain>`: a long-poll of every address under a domain.

use tempmail_model::token::TokenKind;
use tempmail_tests::App;
use tempmail_tests::wait::within_deadline;

use super::super::subjects;

const PATH: &str = "/v1/domain/ours.example";

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
    for path in [PATH, "/v1/domain/OURS.example.", "/v1/domain/%6Furs.example"] {
        let answer = app.get(path).await.expect(200);
        assert_eq!(subjects(&answer["emails"]), ["3", "2", "1"], "{path}");
    }
    let newest = app.get(&format!("{PATH}?limit=1&subject=2")).await.expect(200);
    assert_eq!(subjects(&newest["emails"]), ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wakes_only_for_mail_of_the_domain() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.custom_domain(&app.tenant, "other.example").await;
    let wait = app.start_long_poll(&app.tenant.live, &format!("{PATH}?count=2")).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn ends_with_404_when_the_domain_is_lost_or_deleted() {
    let app = App::start().await;
    let lost = app.custom_domain(&app.tenant, "lost.example").await;
    let deleted = app.custom_domain(&app.tenant, "deleted.example").await;
    let second = app.token(&app.tenant, TokenKind::Live).await;
    let third = app.token(&app.tenant, TokenKind::Live).await;
    let waits = [
        app.start_long_poll(&app.tenant.live, "/v1/domain/lost.example").await,
        app.start_long_poll(&second, "/v1/domain/deleted.example").await,
    ];
    let me = app.start_long_poll(&third, "/v1/me").await;
    app.end_verification(lost).await;
    assert_eq!(app.delete(&format!("/v1/domains/{deleted}")).await.status, 204);
    for wait in waits {
        within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(404, "not_found");
    }
    app.custom_domain(&app.tenant, "kept.example").await;
    app.deliver("a@kept.example", "continues", "").await;
    let answer = within_deadline("the wait on `/v1/me` continues", me).await.unwrap().expect(200);
    assert_eq!(subjects(&answer["emails"]), ["continues"]);
}
