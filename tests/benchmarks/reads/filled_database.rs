//! A database with so many mails, as they lie after three days: three in ten in mailboxes of a
//! tenant over the last 70 hours, seven in ten at shared addresses in the last 50 minutes.

use anyhow::{Context as _, ensure};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Config;
use tempmail_store::NewMailbox;
use uuid::Uuid;

use super::{ReadKind, Request};
use crate::http::HttpClient;
use crate::load::{Connections, Recipients, SmtpLoad};
use crate::stack::{DOMAIN, Stack};

/// Mails that a mailbox got in all.
const MAILS_A_MAILBOX: usize = 300;
/// Mails that a shared address got, all in one step.
const MAILS_AN_ADDRESS: usize = 10;
/// Mailboxes at most whose mail is read; the others are only there.
const READ: usize = 100;
/// Steps through the past, one a partition of 72 h, and their width.
const PAST: (usize, SignedDuration) = (35, SignedDuration::from_hours(2));
/// Steps through the last minutes, and their width.
const RECENT: (usize, SignedDuration) = (10, SignedDuration::from_mins(4));
const PASSWORD: &str = "correct horse";

/// What can be read from a database.
#[derive(Debug)]
pub struct FilledDatabase {
    /// Where it is.
    pub url: String,
    /// Keys that its cursors and JWTs were made with.
    pub config: Config,
    /// Mails in it.
    pub mails: i64,
    tokens: Vec<String>,
    since: String,
    addresses: usize,
    ids: Vec<Uuid>,
    jwts: Vec<String>,
}

impl FilledDatabase {
    /// Fills an empty database with `mails` of `size` octets; `tokens` may be used at once.
    ///
    /// # Errors
    /// Mail is refused, or Postgres does not answer.
    pub async fn fill(url: String, mails: usize, size: usize, tokens: usize) -> anyhow::Result<Self> {
        let stack = Stack::start(&url).await?;
        let now = stack.clock.now();
        let load = SmtpLoad {
            addr: stack.smtp,
            connections: 32,
            mails: 0,
            size,
            pipelined: true,
            recipients: Recipients::Many,
            kind: Connections::Kept,
            domain: DOMAIN.into(),
            label: String::new(),
            limit_seconds: 1_200,
        };
        let begin = now - RECENT.1 * (i32::try_from(RECENT.0)? + 2);
        let past = begin - PAST.1 * i32::try_from(PAST.0)?;
        stack.advance_to(past).await?;

        let mailboxes = (mails * 3 / 10 / MAILS_A_MAILBOX).max(1);
        let jwts = create_mailboxes(&stack, mailboxes).await?;
        for step in 0..PAST.0 {
            let at = past + PAST.1 * i32::try_from(step)?;
            stack.create_partitions(RetentionClass::PRO, at).await?;
            stack.advance_to(at).await?;
            let recipients = Recipients::Some(mailboxes);
            let mails = share(mailboxes * MAILS_A_MAILBOX, PAST.0, step);
            SmtpLoad { mails, recipients, label: "box".into(), ..load.clone() }.run().await?;
        }
        let since = newest_position(&stack).await?;

        let addresses = (mails * 7 / 10 / RECENT.0 / MAILS_AN_ADDRESS).max(1);
        for step in 0..RECENT.0 {
            stack.advance_to(begin + RECENT.1 * i32::try_from(step)?).await?;
            let recipients = Recipients::Some(addresses);
            let mails = addresses * MAILS_AN_ADDRESS;
            SmtpLoad { mails, recipients, label: address_label(step), ..load.clone() }.run().await?;
        }
        create_all_partitions(&stack, now).await?;

        let ids = sqlx::query_scalar("SELECT id FROM message WHERE class = 1 ORDER BY random() LIMIT 10000")
            .fetch_all(stack.store.pool())
            .await?;
        sqlx::query("VACUUM ANALYZE").execute(stack.store.pool()).await?;
        let mails = stack.messages().await?;
        let mut all = Vec::new();
        for _ in 0..tokens {
            all.push(stack.token(TokenKind::Live).await?);
        }
        let config = Config::clone(&stack.config);
        stack.stop().await?;
        Ok(Self { url, config, mails, tokens: all, since, addresses, ids, jwts })
    }

    /// Requests of one kind for one connection, in random order.
    pub fn requests(&self, read: ReadKind, connection: usize, count: usize) -> Vec<Request> {
        let mut random = StdRng::seed_from_u64(connection as u64);
        let token = format!("x-api-token: {}", self.tokens[connection % self.tokens.len()]);
        let request = |_| match read {
            ReadKind::Inbox => {
                let number = random.random_range(1..=self.addresses);
                let label = address_label(random.random_range(0..RECENT.0));
                let target = format!("/v1/inbox/{number}{label}@{DOMAIN}?since={}", self.since);
                Request { target, credential: token.clone() }
            }
            ReadKind::Email => {
                let id = self.ids[random.random_range(0..self.ids.len())];
                Request { target: format!("/v1/email/{id}"), credential: token.clone() }
            }
            ReadKind::Messages => {
                let jwt = &self.jwts[random.random_range(0..self.jwts.len())];
                Request { target: "/api/messages".into(), credential: format!("Authorization: Bearer {jwt}") }
            }
        };
        (0..count).map(request).collect()
    }
}

/// Makes mailboxes of the tenant and returns JWTs of the first of them.
async fn create_mailboxes(stack: &Stack, count: usize) -> anyhow::Result<Vec<String>> {
    let pool = stack.store.pool();
    sqlx::query("UPDATE tenant SET mailbox_limit = 1000000").execute(pool).await?;
    let pro = stack.token(TokenKind::Pro).await?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let accounts = format!("http://{}/api/accounts", stack.http);
    let mut jwts = Vec::new();
    for number in 1..=count.min(READ) {
        let body = json!({ "address": format!("{number}box@{DOMAIN}"), "password": PASSWORD });
        let answer = client.post(&accounts).bearer_auth(&pro).json(&body).send().await?.error_for_status()?;
        let account: Value = answer.json().await?;
        jwts.push(account["token"].as_str().context("a new account has no token")?.to_owned());
    }
    let domain = sqlx::query_scalar("SELECT id FROM domain WHERE name = $1").bind(DOMAIN);
    let domain: Uuid = domain.fetch_one(pool).await?;
    for number in READ + 1..=count {
        let now = stack.clock.now();
        let new = NewMailbox {
            id: new_id(now),
            domain,
            local_part: &format!("{number}box"),
            tenant: Some(stack.tenant),
            free_quota: 0,
            free_limit: 0,
            password_hash: "none",
        };
        stack.store.create_mailbox(new, now).await?;
    }
    Ok(jwts)
}

/// A cursor of just now.
async fn newest_position(stack: &Stack) -> anyhow::Result<String> {
    let mut client = HttpClient::connect(stack.http).await?;
    let answer = client.get(&format!("/v1/inbox/1box@{DOMAIN}"), &stack.token).await?;
    ensure!(answer.status == 200, "/v1/inbox answered {}", answer.status);
    let body: Value = serde_json::from_slice(&answer.body)?;
    Ok(body["next_since"].as_str().context("no next_since")?.to_owned())
}

/// The partitions of three days, also those without mail.
async fn create_all_partitions(stack: &Stack, now: Timestamp) -> anyhow::Result<()> {
    for class in [RetentionClass::FREE, RetentionClass::PRO] {
        let mut at = now - class.duration();
        while at < now + class.partition_width() * 2 {
            stack.store.ensure_message_partition(class, at).await?;
            at += class.partition_width();
        }
    }
    Ok(())
}

/// What the addresses of a step end with.
fn address_label(step: usize) -> String {
    format!("s{step}fill")
}

/// Part `number` of `count` parts that are as equal as can be.
fn share(whole: usize, count: usize, number: usize) -> usize {
    whole * (number + 1) / count - whole * number / count
}
