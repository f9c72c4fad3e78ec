//! While an attack runs, a well-behaved client of another tenant and address is refused nothing, receives and reads each of
//! its mails, and memory is bounded. Clients that share an address or a tenant with an attacker may be refused.
//!
//! Ignored by default: `tests/run chaos` runs them.

use std::fs;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Config;
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::http::percent;
use tempmail_tests::mailbox::Mailbox;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{EventStream, Fleet, SmtpClient, Tenant, smtp};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::attacker::{Attack, Attacker};

/// How long each attack runs.
const TIME: Duration = Duration::from_secs(10);

/// Message data in memory of `ingest`: a quarter of the default, less than an attack that parks data sends.
const MESSAGE_DATA: usize = 128 << 20;

/// Most resident memory of a process, beside message data. Of `api`, 256 MiB may be answers that wait to be read, of
/// which one client has a quarter at most.
const MEMORY: u64 = 300 << 20;

/// An attack takes the processor that others need for their deadlines, so one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// The default limits: nobody is exempt. What is small is reached within the time of an attack.
fn limit_everybody(config: &mut Config) {
    let defaults = Config::default();
    config.http.unlimited_networks = defaults.http.unlimited_networks;
    config.smtp.unlimited_networks = defaults.smtp.unlimited_networks;
    // The clients name their addresses in headers of the PROXY protocol.
    config.smtp.proxy_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config.limits = defaults.limits;
    config.smtp.memory_bytes = MESSAGE_DATA;
    config.smtp.memory_bytes_per_peer = MESSAGE_DATA / 2;
    config.smtp.memory_bytes_per_tenant = MESSAGE_DATA / 4 * 3;
}

async fn disturbs_nobody(attack: Attack) {
    let _permit = ONE_AT_A_TIME.lock().await;
    let fleet = Fleet::builder().apis(1).ingests(1).workers(1).config(limit_everybody).start().await;
    let attacker = Attacker::new(&fleet, attack).await;
    let victim = Victim::new(&fleet).await;
    let mails = tokio::select! {
        mails = victim.run(Instant::now() + TIME) => mails,
        () = attacker.attack(attack) => unreachable!("it has no end of its own"),
    };
    let answers = attacker.answers();
    assert!(mails > 0 && !answers.is_empty(), "{mails} mails beside {answers:?}");
    assert_bounded(fleet.api(0), MEMORY);
    assert_bounded(fleet.ingest(0), MEMORY + MESSAGE_DATA as u64);
    for process in fleet.processes() {
        process.wait_until_ready().await;
    }
}

/// Asserts that a process never had more memory.
fn assert_bounded(process: &RoleProcess, most: u64) {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).expect("the process is there");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    let peak = kib.expect("Linux tells the peak") << 10;
    assert!(peak <= most, "{:?} had {} MiB", process.role(), peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn data_that_is_parked_with_bdat_disturbs_nobody() {
    disturbs_nobody(Attack::ParkedData).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn slow_readers_disturb_nobody() {
    disturbs_nobody(Attack::SlowReading).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn unknown_credentials_disturb_nobody() {
    disturbs_nobody(Attack::UnknownCredentials).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn wrong_passwords_disturb_nobody() {
    disturbs_nobody(Attack::SignIns).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s on 10,000 messages"]
async fn searches_that_find_nothing_disturb_nobody() {
    disturbs_nobody(Attack::Searches).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn codes_of_a_mail_of_numbers_disturb_nobody() {
    disturbs_nobody(Attack::Extraction).await;
}

/// Its client address in headers of the PROXY protocol. Over HTTP it is 127.0.0.1.
const SMTP_ADDRESS: &str = "192.0.2.3";

/// Least time between two mails: a token may make 10 requests a second, and a mail takes two or three.
const EVERY: Duration = Duration::from_millis(400);

/// The client.
pub(super) struct Victim<'f> {
    fleet: &'f Fleet,
    tenant: Tenant,
    mailbox: Mailbox,
    stream: EventStream,
    /// Where its long-polls go on.
    since: String,
}

impl<'f> Victim<'f> {
    /// A tenant with a mailbox, and a stream of its mail.
    pub(super) async fn new(fleet: &'f Fleet) -> Self {
        let tenant = fleet.another_tenant("victim").await;
        let mailbox = fleet.mailbox(Some(&tenant.pro), "victim@inbox.localhost").await;
        let path = format!("/v1/sse/addr?address={}", percent(&mailbox.address));
        let token = fleet.token(&tenant, TokenKind::Live).await;
        let mut stream = EventStream::open(fleet.request(0, Method::GET, &path).live(&token)).await;
        while stream.last_event_id().is_empty() {
            stream.block().await;
        }
        let since = stream.last_event_id().to_owned();
        Self { fleet, tenant, mailbox, stream, since }
    }

    /// Sends, receives and reads mails until then; how many.
    ///
    /// # Panics
    /// Something is refused, or does not come.
    pub(super) async fn run(mut self, until: Instant) -> usize {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut mails = 0;
        while Instant::now() < until {
            ticks.tick().await;
            let subject = format!("calm {mails}");
            self.send(&subject).await;
            let id = self.poll(&subject).await;
            let event = within_deadline("the event of the stream", self.stream.next()).await;
            let event: Value = serde_json::from_str(&event.data).expect("the data of an event is JSON");
            assert_eq!(event["subject"], subject);
            let by_token = self.fleet.request(0, Method::GET, &format!("/v1/email/{id}"));
            assert_eq!(by_token.live(&self.tenant.live).send().await.expect(200)["subject"], subject);
            let by_jwt = self.fleet.request(0, Method::GET, &format!("/api/messages/{id}"));
            assert_eq!(by_jwt.bearer(&self.mailbox.jwt).send().await.expect(200)["subject"], subject);
            mails += 1;
        }
        mails
    }

    async fn send(&self, subject: &str) {
        let mut session = SmtpClient::connect_with_ehlo_from(self.fleet.smtp(0), SMTP_ADDRESS).await;
        let mail = smtp::message("Ada <ada@client.example>", subject, "quite small");
        let reply = session.transact("ada@client.example", &[&self.mailbox.address], &mail).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }

    /// The id of the mail that a long-poll answers.
    async fn poll(&mut self, subject: &str) -> String {
        loop {
            let path = format!("/v1/inbox/{}?since={}", percent(&self.mailbox.address), self.since);
            let answer = self.fleet.request(0, Method::GET, &path).live(&self.tenant.live).send().await;
            if answer.status == 204 {
                answer.header("x-next-since").clone_into(&mut self.since);
                continue;
            }
            let found = answer.expect(200);
            found["next_since"].as_str().expect("next_since is a text").clone_into(&mut self.since);
            let email = &found["emails"][0];
            assert_eq!(email["subject"], subject);
            return email["id"].as_str().expect("an id is a text").to_owned();
        }
    }
}
