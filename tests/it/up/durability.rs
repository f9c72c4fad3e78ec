//! `kill -9` of all processes, including Postgres: every mail that got `250` is stored, once and complete.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::Request;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Response, SmtpClient};

const MAILS_PER_ROUND: usize = 200;
const CONNECTIONS: usize = 8;
const SEED: u64 = 20_261_121;
const ENVIRONMENT: [(&str, &str); 1] = [("TEMPMAIL_LIMITS__V1_PER_SECOND", "100000")];

/// The names of accepted mails by address.
type AcceptedMails = BTreeMap<String, Vec<String>>;

/// A mail whose last line shows that it is complete.
fn message(name: &str) -> Vec<u8> {
    let line = format!("{name} {}\r\n", "lorem ipsum ".repeat(6));
    format!("From: a@client.example\r\nSubject: {name}\r\n\r\n{}end of {name}\r\n", line.repeat(35))
        .into_bytes()
}

/// Sends mail over one connection until the server is killed. Returns the address, which gets at most a
/// page of mail, and the names of the accepted mails.
async fn send_until_killed(
    installation: &UpInstallation,
    round: usize,
    connection: usize,
    accepted: &AtomicUsize,
) -> (String, Vec<String>) {
    let address = format!("crash.{round}.{connection}@inbox.localhost");
    let mut names = Vec::new();
    let Ok(mut client) = SmtpClient::connect_without_greeting(installation.smtp).await else {
        return (address, names);
    };
    if client.try_reply().await.is_none() {
        return (address, names);
    }
    client.send("EHLO client.example\r\n").await;
    if client.try_reply().await.is_none() {
        return (address, names);
    }
    for i in 0..MAILS_PER_ROUND / CONNECTIONS {
        let name = format!("mail-{round}-{connection}-{i}");
        match client.try_transact("a@client.example", &[&address], &message(&name)).await {
            Some(reply) if reply.code == 250 => {
                accepted.fetch_add(1, Ordering::Release);
                names.push(name);
            }
            Some(reply) => assert_eq!(reply.code / 100, 4, "{reply:?}"),
            None => break,
        }
    }
    (address, names)
}

/// Kills everything under load, once per round and at a random moment, and checks the accepted mails in
/// the end.
async fn kill_under_load(rounds: usize) {
    let installation = UpInstallation::new();
    let mut random = StdRng::seed_from_u64(SEED);
    let mut accepted_mails = AcceptedMails::new();
    let mut server = installation.up(&ENVIRONMENT);
    for round in 0..rounds {
        // The moment is a number of accepted mails, so that it is within the load, some of which may be deferred.
        let kill_at = random.random_range(1..MAILS_PER_ROUND * 3 / 4);
        let accepted = AtomicUsize::new(0);
        let load = join_all(
            (0..CONNECTIONS).map(|connection| send_until_killed(&installation, round, connection, &accepted)),
        );
        let kill = async {
            eventually("enough mails are accepted", || async {
                (accepted.load(Ordering::Acquire) >= kill_at).then_some(())
            })
            .await;
            tokio::task::block_in_place(|| server.kill_tree());
        };
        let (load, ()) = tokio::join!(load, kill);
        accepted_mails.extend(load);
        server = tokio::task::block_in_place(|| installation.up(&ENVIRONMENT));
    }
    let total: usize = accepted_mails.values().map(Vec::len).sum();
    assert!(total > rounds, "only {total} mails were accepted");
    check(&installation, &accepted_mails).await;
}

async fn check(installation: &UpInstallation, accepted_mails: &AcceptedMails) {
    let token = installation.credentials()["live_token"].as_str().unwrap().to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = |path: String| {
        let url = format!("http://{}{path}", installation.http);
        let request = Request::new(&client, reqwest::Method::GET, &url).live(&token);
        async move { request.send().await }
    };
    for (address, names) in accepted_mails.iter().filter(|(_, names)| !names.is_empty()) {
        let answer: Response = get(format!("/v1/inbox/{address}?limit=50")).await;
        let body = answer.expect(200);
        let emails = body["emails"].as_array().unwrap();
        let mut stored: Vec<&str> = emails.iter().map(|email| email["subject"].as_str().unwrap()).collect();
        stored.sort_unstable();
        let count = stored.len();
        stored.dedup();
        assert_eq!(stored.len(), count, "{address} has a mail twice");
        for name in names {
            assert!(stored.contains(&name.as_str()), "{name} got 250 and is lost");
        }
        for email in emails {
            let name = email["subject"].as_str().unwrap();
            let raw = get(format!("/v1/email/{}/raw", email["id"].as_str().unwrap())).await;
            assert_eq!(raw.status, 200, "{name}");
            assert!(raw.body.ends_with(&message(name)), "{name} is incomplete");
            assert_eq!(email["size"], raw.body.len(), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_every_accepted_mail_when_all_processes_are_killed_twice() {
    kill_under_load(2).await;
}

mod chaos {
    use super::kill_under_load;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: kills all processes ten times"]
    async fn keeps_every_accepted_mail_when_all_processes_are_killed_ten_times() {
        kill_under_load(10).await;
    }
}
