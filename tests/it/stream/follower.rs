//! Clients that follow `next_since`, and the load they follow.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::percent;
use tempmail_tests::{App, SmtpClient, smtp};

/// One address that half of the mail goes to, and those that share the rest.
pub fn addresses(others: usize) -> Vec<String> {
    (0..=others).map(|i| format!("follow{i}@inbox.localhost")).collect()
}

/// Which address the mail of a number goes to.
fn address_of(addresses: &[String], number: usize) -> &str {
    let others = addresses.len() - 1;
    if number.is_multiple_of(2) { &addresses[0] } else { &addresses[1 + number / 2 % others] }
}

/// What each address was sent, and what its follower met, in the order it did.
pub struct Met {
    /// Numbers sent to the address.
    pub sent: usize,
    /// Subjects met, oldest first.
    pub subjects: Vec<String>,
}

/// Sends `mails` over 32 connections to all ingest servers while a follower an address goes
/// after them; ends when every follower has met the mail that was sent after all others.
pub async fn follow(app: &App, addresses: &[String], mails: usize) -> BTreeMap<String, Met> {
    // A first mail gives every follower its place in the stream.
    let mut followers = Vec::new();
    for address in addresses {
        app.deliver(address, "first", "").await;
        let token = app.token(&app.tenant, TokenKind::Live).await;
        let first = app.get_as(&token, &format!("/v1/inbox/{}", percent(address))).await.expect(200);
        followers.push((address, token, first["next_since"].as_str().unwrap().to_owned()));
    }
    let load = async {
        join_all((0..32).map(|connection| send(app, addresses, mails, connection))).await;
        for address in addresses {
            app.deliver(address, "last", "").await;
        }
    };
    let follow = join_all(followers.into_iter().map(|(address, token, since)| async move {
        (address.clone(), follow_one(app, address, &token, since).await)
    }));
    let ((), met) = tokio::join!(load, follow);
    met.into_iter()
        .map(|(address, subjects)| {
            let sent = (0..mails).filter(|&number| address_of(addresses, number) == address).count();
            (address, Met { sent, subjects })
        })
        .collect()
}

async fn send(app: &App, addresses: &[String], mails: usize, connection: usize) {
    let servers = app.smtp_all();
    let mut client = SmtpClient::connect_with_ehlo(servers[connection % servers.len()]).await;
    for number in (connection..mails).step_by(32) {
        let message = smtp::message("a@client.example", &format!("{number}"), "");
        let recipient = address_of(addresses, number);
        let reply = client.transact("a@client.example", &[recipient], &message).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

async fn follow_one(app: &App, address: &str, token: &str, mut since: String) -> Vec<String> {
    let mut met = Vec::new();
    loop {
        let path = format!("/v1/inbox/{}?limit=50&since={since}", percent(address));
        let answer = app.request(Method::GET, &path).live(token).send_until_available().await;
        if answer.status == 204 {
            answer.header("x-next-since").clone_into(&mut since);
            continue;
        }
        let body = answer.expect(200);
        since = body["next_since"].as_str().unwrap().to_owned();
        for email in body["emails"].as_array().unwrap().iter().rev() {
            match email["subject"].as_str().unwrap() {
                "last" => return met,
                subject => met.push(subject.to_owned()),
            }
        }
    }
}
