//! `kill -9` of everything, Postgres included: what got `250` is there, once and whole.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempmail_tests::binary::Installation;
use tempmail_tests::http::Request;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Response, SmtpClient};

const ROUNDS: usize = 10;
const MAILS_A_ROUND: usize = 200;
const CONNECTIONS: usize = 8;
const SEED: u64 = 20_261_121;

/// A mail whose end tells that it is whole.
fn message(name: &str) -> Vec<u8> {
    let line = format!("{name} {}\r\n", "lorem ipsum ".repeat(6));
    format!("From: a@client.example\r\nSubject: {name}\r\n\r\n{}end of {name}\r\n", line.repeat(35))
        .into_bytes()
}

/// The address of one connection in one round: no more mail than one page shows.
fn address(round: usize, connection: usize) -> String {
    format!("crash.{round}.{connection}@inbox.localhost")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_250_outlives_ten_kills_exactly_once_and_whole() {
    let installation = Installation::new();
    let environment = [("TEMPMAIL_LIMITS__V1_PER_SECOND", "100000")];
    let mut random = StdRng::seed_from_u64(SEED);
    let mut taken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut server = installation.up(&environment);
    for round in 0..ROUNDS {
        // The moment, told by what was taken so far, so that it falls into the load anywhere.
        let kill_at = random.random_range(1..MAILS_A_ROUND);
        let accepted = AtomicUsize::new(0);
        let load = join_all((0..CONNECTIONS).map(|connection| {
            let (installation, accepted) = (&installation, &accepted);
            async move {
                let address = address(round, connection);
                let mut taken = Vec::new();
                let Ok(mut client) = SmtpClient::connect_without_greeting(installation.smtp).await else {
                    return (address, taken);
                };
                if client.try_reply().await.is_none() {
                    return (address, taken);
                }
                client.send("EHLO client.example\r\n").await;
                if client.try_reply().await.is_none() {
                    return (address, taken);
                }
                for i in 0..MAILS_A_ROUND / CONNECTIONS {
                    let name = format!("mail-{round}-{connection}-{i}");
                    let reply = client.try_transact("a@client.example", &[&address], &message(&name)).await;
                    match reply {
                        Some(reply) if reply.code == 250 => {
                            accepted.fetch_add(1, Ordering::Release);
                            taken.push(name);
                        }
                        Some(reply) => assert_eq!(reply.code / 100, 4, "{reply:?}"),
                        None => break,
                    }
                }
                (address, taken)
            }
        }));
        let kill = async {
            eventually("so many mails are taken", || async {
                (accepted.load(Ordering::Acquire) >= kill_at).then_some(())
            })
            .await;
            tokio::task::block_in_place(|| server.kill_tree());
        };
        let (load, ()) = tokio::join!(load, kill);
        taken.extend(load);
        server = tokio::task::block_in_place(|| installation.up(&environment));
    }
    let total: usize = taken.values().map(Vec::len).sum();
    assert!(total > ROUNDS, "the load was taken: {total}");
    check(&installation, &taken).await;
}

async fn check(installation: &Installation, taken: &BTreeMap<String, Vec<String>>) {
    let token = installation.credentials()["live_token"].as_str().unwrap().to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = |path: String| {
        let url = format!("http://{}{path}", installation.http);
        let request = Request::new(&client, reqwest::Method::GET, &url).live(&token);
        async move { request.send().await }
    };
    for (address, names) in taken.iter().filter(|(_, names)| !names.is_empty()) {
        let answer: Response = get(format!("/v1/inbox/{address}?limit=50")).await;
        let body = answer.expect(200);
        let emails = body["emails"].as_array().unwrap();
        let mut there: Vec<&str> = emails.iter().map(|email| email["subject"].as_str().unwrap()).collect();
        there.sort_unstable();
        let stored = there.len();
        there.dedup();
        assert_eq!(there.len(), stored, "{address} has a mail twice");
        for name in names {
            assert!(there.contains(&name.as_str()), "{name} got 250 and is gone");
        }
        for email in emails {
            let name = email["subject"].as_str().unwrap();
            let raw = get(format!("/v1/email/{}/raw", email["id"].as_str().unwrap())).await;
            assert_eq!(raw.status, 200, "{name}");
            assert!(raw.body.ends_with(&message(name)), "{name} is torn");
            assert_eq!(email["size"], raw.body.len(), "{name}");
        }
    }
}
