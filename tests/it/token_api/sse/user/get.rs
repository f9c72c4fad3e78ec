//! `GET /v1/sse/user`: mail of everything a tenant owns.

use tempmail_tests::App;

use super::super::{USER, assert_nothing_unread, open_and_read_cursor, subjects};

#[tokio::test(flavor = "multi_thread")]
async fn sends_mail_of_mailboxes_and_verified_domains_only() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), "ours@inbox.localhost").await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.mailbox(Some(&app.tenant.pro), "box@ours.example").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let mut stream = open_and_read_cursor(&app, USER).await;
    for (address, subject) in [
        ("ours@inbox.localhost", "1"),
        ("theirs@inbox.localhost", "x"),
        ("ours+tag@inbox.localhost", "2"),
        ("any.name@theirs.example", "x"),
        ("any.name@ours.example", "3"),
        ("free@inbox.localhost", "x"),
        ("box@ours.example", "4"),
        ("shared@inbox.localhost", "x"),
        ("ours@inbox.localhost", "5"),
    ] {
        app.deliver(address, subject, "").await;
    }
    assert_eq!(subjects(&mut stream, 5).await, ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_mail_of_mailboxes_and_domains_created_while_open() {
    let app = App::start().await;
    let mut stream = open_and_read_cursor(&app, USER).await;
    app.mailbox(Some(&app.tenant.pro), "late@inbox.localhost").await;
    app.deliver("late@inbox.localhost", "to the mailbox", "").await;
    app.custom_domain(&app.tenant, "late.example").await;
    app.deliver("any@late.example", "to the domain", "").await;
    assert_eq!(subjects(&mut stream, 2).await, ["to the mailbox", "to the domain"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_a_lost_domain_and_stays_open() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "ours@inbox.localhost").await;
    let domain = app.custom_domain(&app.tenant, "ours.example").await;
    let mut stream = open_and_read_cursor(&app, USER).await;
    let cursor = stream.last_event_id().to_owned();
    app.deliver("a@ours.example", "while it was ours", "").await;
    assert_eq!(subjects(&mut stream, 1).await, ["while it was ours"]);
    app.end_verification(domain).await;
    assert_nothing_unread(&app, &mut stream, "ours@inbox.localhost").await;
    // A stream that resumes before it does not get it any more.
    let mut resumed = open_and_read_cursor(&app, &format!("{USER}?since={cursor}")).await;
    assert_eq!(subjects(&mut resumed, 1).await, ["a mail to be next"]);
}
