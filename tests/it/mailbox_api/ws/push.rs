//! Pushes of new mail: fields, recipients and order.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::json;
use tempmail_tests::app::Mailbox;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, SmtpClient, WebSocket, send_mail, smtp};
use uuid::Uuid;

use super::{assert_nothing_unread, pushed, subjects, try_watch, watch};

/// Ids of a mailbox's messages, in stream order.
async fn stored(app: &App, mailbox: &Mailbox) -> Vec<Uuid> {
    let ids = sqlx::query_scalar("SELECT id FROM message WHERE owner = $1 ORDER BY seq").bind(mailbox.id);
    ids.fetch_all(&app.pool).await.unwrap()
}

fn id(message: &serde_json::Value) -> Uuid {
    message["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_new_mail_with_the_documented_fields() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "fields@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    let mail = smtp::message("Ada <ada@client.example>", "A subject", "The text of it.");
    send_mail(app.smtp(), "bounces@client.example", "fields+tag@inbox.localhost", &mail).await;
    let message = pushed(&mut socket).await;
    let mut expected = app.messages(&mailbox).await.remove(0);
    expected.as_object_mut().unwrap().remove("is_read");
    expected["type"] = json!("new_email");
    expected["account_id"] = json!(mailbox.id);
    expected["address"] = json!("fields+tag@inbox.localhost");
    assert_eq!(message, expected, "as it is listed, and whose it is");
    let full = app.get_mailbox(&mailbox, &format!("/api/messages/{}", id(&message))).await.expect(200);
    assert_eq!(full["text_body"].as_str().unwrap().trim(), "The text of it.");
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_only_mail_of_the_mailbox() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    assert!(!domain.is_nil());
    let mailbox = app.mailbox(Some(&app.tenant.pro), "captain@ships.example").await;
    let other = app.mailbox(Some(&app.tenant.pro), "mate@ships.example").await;
    let mut socket = watch(&app, &mailbox).await;
    for address in
        [other.address.as_str(), "nobody@ships.example", "captain@inbox.localhost", "captains@ships.example"]
    {
        app.deliver(address, "not its own", "").await;
    }
    app.deliver("captain+log@ships.example", "a tag of it", "").await;
    assert_eq!(subjects(&mut socket, 1).await, ["a tag of it"]);
    assert_nothing_unread(&app, &mailbox, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_push_mail_from_before_auth_ok() {
    let app = App::start().await;
    app.deliver("early@inbox.localhost", "before the mailbox", "").await;
    let mailbox = app.mailbox(None, "early@inbox.localhost").await;
    app.deliver(&mailbox.address, "before the socket", "").await;
    let mut socket = watch(&app, &mailbox).await;
    app.deliver(&mailbox.address, "after it", "").await;
    assert_eq!(subjects(&mut socket, 1).await, ["after it"]);
    assert_eq!(app.messages(&mailbox).await.len(), 2);
}

/// Sends `count` mails over one session.
async fn send_many(app: &App, address: &str, count: usize) {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for n in 0..count {
        let mail = smtp::message("a@client.example", &format!("{n}"), "");
        let reply = client.transact("a@client.example", &[address], &mail).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_every_mail_once_in_stream_order() {
    let app = App::builder().ingests(2).start().await;
    let mut mailboxes = Vec::new();
    for n in 0..4 {
        mailboxes.push(app.mailbox(None, &format!("load-{n}@inbox.localhost")).await);
    }
    let mut sockets = Vec::new();
    for mailbox in &mailboxes {
        sockets.push((mailbox, watch(&app, mailbox).await));
        sockets.push((mailbox, watch(&app, mailbox).await));
    }
    let senders = mailboxes.iter().flat_map(|mailbox| (0..3).map(|_| send_many(&app, &mailbox.address, 40)));
    let receivers = sockets.iter_mut().map(async |(mailbox, socket)| {
        let mut ids = Vec::new();
        for _ in 0..120 {
            ids.push(id(&pushed(socket).await));
        }
        (*mailbox, ids)
    });
    let (_, received) = tokio::join!(join_all(senders), join_all(receivers));
    for (mailbox, ids) in received {
        assert_eq!(ids, stored(&app, mailbox).await);
    }
    for (mailbox, mut socket) in sockets.into_iter().step_by(2) {
        assert_nothing_unread(&app, mailbox, &mut socket).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_after_auth_ok_and_pushes_cover_every_mail() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "reconnect@inbox.localhost").await;
    let (mut known, mut repeated) = (BTreeSet::new(), 0);
    let connect = async {
        while known.len() < 200 {
            // Sockets that were dropped may still hold their slots.
            let mut socket = eventually("a slot is free", || try_watch(&app, &mailbox)).await;
            let mut listed = BTreeSet::new();
            for page in 1.. {
                let answer =
                    app.get_mailbox(&mailbox, &format!("/api/messages?page={page}")).await.expect(200);
                let messages = answer["messages"].as_array().unwrap();
                listed.extend(messages.iter().map(id));
                if messages.len() < 30 {
                    break;
                }
            }
            known.extend(listed);
            // Reads a few pushes, then reconnects.
            let mut from_here = BTreeSet::new();
            for _ in 0..7 {
                if known.len() >= 200 {
                    break;
                }
                let id = id(&pushed(&mut socket).await);
                assert!(from_here.insert(id), "{id} came twice");
                repeated += usize::from(!known.insert(id));
            }
        }
    };
    let (_, ()) = tokio::join!(join_all((0..4).map(|_| send_many(&app, &mailbox.address, 50))), connect);
    assert_eq!(known, stored(&app, &mailbox).await.into_iter().collect());
    assert!(repeated <= 7 * 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_mail_without_a_bus_hint() {
    // Processes without Redis share no bus: the API process finds the mail in Postgres.
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let mailbox = fleet.mailbox(None, "silent@inbox.localhost").await;
    let mut socket = WebSocket::authenticated(fleet.http(0), &mailbox.jwt).await;
    let expected: Vec<String> = (0..20).map(|n| format!("silent {n}")).collect();
    for subject in &expected {
        fleet.deliver(0, &mailbox.address, subject).await;
    }
    assert_eq!(subjects(&mut socket, 20).await, expected);
}
