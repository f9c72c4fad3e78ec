//! `./tests/bench sign-in`: whether response times reveal what other tenants have. Requests whose
//! responses must look alike are sent in turn over one connection, so that other load on the machine
//! affects all of them; their medians are compared.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::{id_time, new_id};
use tempmail_tests::{send_mail, smtp};
use uuid::Uuid;

use crate::environment::work_directory;
use crate::http::{HttpClient, Response};
use crate::measure::{Latencies, millis, print_table};
use crate::stack::{BenchPostgres, DOMAIN, Stack};

/// `./tests/bench sign-in` options.
#[derive(Debug, Args)]
pub struct SignIn {
    /// Sign-ins of each kind
    #[arg(long, default_value_t = 200)]
    sign_ins: usize,
    /// Requests for a message of each kind
    #[arg(long, default_value_t = 3_000)]
    reads: usize,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
}

/// Mailboxes that there are, of which the known addresses are taken.
const MAILBOXES: usize = 10;

impl SignIn {
    /// Runs both measurements and prints their tables.
    ///
    /// # Errors
    /// An answer is not the one that all of them must be.
    pub async fn run(&self) -> anyhow::Result<()> {
        let directory = work_directory(&self.work_dir)?;
        let cluster = BenchPostgres::start(directory.path()).await?;
        let stack = Stack::start(&cluster.create_database("sign_in").await?).await?;
        let measured = self.measure(&stack).await;
        stack.stop().await?;
        cluster.stop().await;
        measured
    }

    async fn measure(&self, stack: &Stack) -> anyhow::Result<()> {
        let mut client = HttpClient::connect(stack.http).await?;
        let mut jwt = String::new();
        for number in 0..MAILBOXES {
            let created = post(&mut client, "/api/accounts", &known(number)).await?;
            ensure!(created.status == 201, "a mailbox was answered {}", created.status);
            jwt = text(&json_of(&created)?, "token")?;
        }
        self.sign_ins(&mut client).await?;
        self.reads(stack, &mut client, &jwt).await
    }

    async fn sign_ins(&self, client: &mut HttpClient) -> anyhow::Result<()> {
        let mut times = [const { Vec::new() }; 3];
        for number in 0..self.sign_ins * 3 {
            // Each kind is the first, second and third of its turn equally often.
            let (turn, place) = (number / 3, number % 3);
            let kind = (turn + place) % 3;
            let address = match kind {
                0 => known(turn % MAILBOXES),
                1 => format!("unknown{}@{DOMAIN}", turn % MAILBOXES),
                _ => format!("no address {}", turn % MAILBOXES),
            };
            let started = Instant::now();
            let answer = post_with(client, "/api/token", &address, "wrong password").await?;
            times[kind].push(started.elapsed());
            ensure!(answer.status == 401, "a sign-in was answered {}", answer.status);
        }
        let kinds = ["known address, wrong password", "unknown address", "malformed address"];
        print(&format!("POST /api/token, {} of each", self.sign_ins), kinds, 1, times);
        Ok(())
    }

    /// The mail of a free mailbox is another's to every token.
    async fn reads(&self, stack: &Stack, client: &mut HttpClient, jwt: &str) -> anyhow::Result<()> {
        let mail = smtp::message("a@client.example", "another's", "body");
        let reply = send_mail(stack.smtp, "a@client.example", &known(MAILBOXES - 1), &mail).await;
        ensure!(reply.code == 250, "the mail was answered {reply:?}");
        let bearer = format!("Bearer {jwt}");
        let list =
            json_of(&client.send("GET", "/api/messages", &format!("Authorization: {bearer}"), "").await?)?;
        let theirs: Uuid = text(&list["messages"][0], "id")?.parse()?;
        let at = id_time(theirs).unwrap_or_else(|| stack.clock.now());
        let mut times = [const { Vec::new() }; 2];
        for number in 0..self.reads * 2 {
            let kind = (number / 2 + number) % 2;
            let id = if kind == 0 { theirs } else { new_id(at) };
            let started = Instant::now();
            let answer = client.get(&format!("/v1/email/{id}"), &stack.token).await?;
            times[kind].push(started.elapsed());
            ensure!(answer.status == 404, "a message was answered {}", answer.status);
        }
        let kinds = ["id of another's message", "made-up id of its millisecond"];
        print(&format!("GET /v1/email/<id>, {} of each", self.reads), kinds, 1, times);
        Ok(())
    }
}

/// Prints the times of each kind, and the ratio of its median to that of the kind `base`.
fn print<const N: usize>(title: &str, kinds: [&str; N], base: usize, times: [Vec<Duration>; N]) {
    println!("\n{title}\n");
    let times = times.map(Latencies::new);
    let base = millis(times[base].p50());
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(&times)
        .map(|(kind, times)| {
            let (p50, p99) = (millis(times.p50()), millis(times.p99()));
            vec![(*kind).to_owned(), format!("{p50:.3}"), format!("{p99:.3}"), format!("{:.3}", p50 / base)]
        })
        .collect();
    print_table(&["", "p50 ms", "p99 ms", "ratio of medians"], &rows);
}

fn known(number: usize) -> String {
    format!("known{number}@{DOMAIN}")
}

async fn post(client: &mut HttpClient, target: &str, address: &str) -> anyhow::Result<Response> {
    post_with(client, target, address, "correct horse").await
}

async fn post_with(
    client: &mut HttpClient,
    target: &str,
    address: &str,
    password: &str,
) -> anyhow::Result<Response> {
    let body = json!({ "address": address, "password": password }).to_string();
    client.send("POST", target, "Accept: application/json", &body).await
}

fn json_of(answer: &Response) -> anyhow::Result<Value> {
    Ok(serde_json::from_slice(&answer.body)?)
}

fn text(object: &Value, key: &str) -> anyhow::Result<String> {
    Ok(object[key].as_str().with_context(|| format!("no {key} in the answer"))?.to_owned())
}
