//! The well-behaved client beside an attack: it sends small mail, waits for each in two ways, and reads it with a token of
//! its tenant and with the JWT of its mailbox. All of it is served.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::percent;
use tempmail_tests::mailbox::Mailbox;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{EventStream, Fleet, SmtpClient, Tenant, smtp};
use tokio::time::{Instant, MissedTickBehavior, interval};

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
