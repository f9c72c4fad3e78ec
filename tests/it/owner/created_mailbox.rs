//! A mailbox is created while mail for its address arrives.

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::{App, SmtpClient, smtp};

#[tokio::test(flavor = "multi_thread")]
async fn delivers_mail_to_a_new_mailbox_from_its_201_on() {
    for round in 0..5 {
        one_mailbox(round).await;
    }
}

async fn one_mailbox(round: usize) {
    let app = App::builder().ingests(2).start().await;
    let address = "flow@inbox.localhost";
    let (created, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    // Follows the shared inbox until it is the mailbox's: what it ever showed.
    let follower = async {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        let other = app.another_tenant("lighthouse").await;
        let mut seen = Vec::new();
        while !enough.load(Ordering::Acquire) {
            let request = app.request(Method::GET, &format!("/v1/inbox/{address}?limit=50"));
            let answer = request.live(&other.live).send_until_available().await;
            match answer.status {
                200 => seen.extend(answer.json()["emails"].as_array().unwrap().clone()),
                404 => break,
                status => panic!("{status}: {}", answer.text()),
            }
        }
        drop(token);
        seen
    };
    let senders = (0..4).map(|sender| {
        let (app, created, enough) = (&app, &created, &enough);
        async move {
            let server = app.smtp_all()[sender % 2];
            let mut client = SmtpClient::connect_with_ehlo(server).await;
            let mut after = Vec::new();
            for i in 0..200 {
                // Read before the mail transaction begins.
                let exists = created.load(Ordering::Acquire);
                let subject = format!("{sender}.{i}");
                let message = smtp::message("a@client.example", &subject, "");
                let reply = client.transact("a@client.example", &[address], &message).await;
                assert_eq!(reply.code, 250, "{reply:?}");
                if exists {
                    after.push(subject);
                }
                if after.len() >= 5 {
                    break;
                }
            }
            if sender == 0 {
                enough.store(true, Ordering::Release);
            }
            after
        }
    });
    let creation = async {
        tempmail_tests::wait::eventually("mail flows", || async {
            (app.count("SELECT seq FROM stream").await > 10).then_some(())
        })
        .await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), address).await;
        created.store(true, Ordering::Release);
        mailbox
    };
    let (seen, sent, mailbox) = tokio::join!(follower, futures_util::future::join_all(senders), creation);

    let mut inside = Vec::new();
    for page in 1.. {
        let body = app.get_mailbox(&mailbox, &format!("/api/messages?page={page}")).await.expect(200);
        let messages = body["messages"].as_array().unwrap().clone();
        let last = messages.len() < 30;
        inside.extend(messages);
        if last {
            break;
        }
    }
    let subjects: Vec<&str> = inside.iter().map(|message| message["subject"].as_str().unwrap()).collect();
    for subject in sent.iter().flatten() {
        let times = subjects.iter().filter(|other| *other == subject).count();
        assert_eq!(times, 1, "round {round}: {subject} was sent after the 201");
    }
    for email in &seen {
        assert!(
            !inside
                .iter()
                .any(|message| message["id"] == email["id"] || message["subject"] == email["subject"]),
            "round {round}: {email} is in two views"
        );
    }
}
