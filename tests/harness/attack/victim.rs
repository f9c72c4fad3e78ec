//! The well-behaved client beside an attack: for each of its mailboxes it sends small mail, waits for it in two ways, and
//! reads it with a token of its tenant and with the JWT of the mailbox.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::chance;
use tempmail_model::token::TokenKind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::{AttackTarget, connect};
use crate::http::{Request, percent};
use crate::mailbox::Mailbox;
use crate::rows::SYSTEM_DOMAIN;
use crate::smtp::{SmtpClient, message};
use crate::sse::EventStream;

/// Time between two mails to a mailbox.
const EVERY: Duration = Duration::from_millis(200);
/// Least time between two requests with a token, which may make 10 a second.
const PACE: Duration = Duration::from_millis(110);
/// How long it waits for its last mails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The local part of a mailbox, which is of its tenant.
pub(super) fn local_part(mailbox: usize) -> String {
    format!("victim{mailbox}")
}

/// The address of a mailbox.
pub(super) fn address(mailbox: usize) -> String {
    format!("{}@{SYSTEM_DOMAIN}", local_part(mailbox))
}

/// The client.
#[derive(Debug)]
pub struct Victim {
    target: AttackTarget,
    client: reqwest::Client,
    /// Those of each mailbox: each of its tasks has one of its own.
    tokens: Vec<[String; 3]>,
}

/// What became of its mail.
#[derive(Debug, Default)]
pub struct VictimReport {
    /// Mails that it sent.
    pub mails: usize,
    /// From connecting to the `250`, each.
    pub sends: Vec<Duration>,
    /// From the `250` to the answer of a long-poll, each; or from its request, where that came later: a long-poll that
    /// is answered for another's mail is not asked again at once.
    pub polls: Vec<Duration>,
    /// From the `250` to the event of a stream, each.
    pub events: Vec<Duration>,
    /// From the request for the message with a live token to its last octet, each.
    pub reads: Vec<Duration>,
    /// The same with the JWT of the mailbox.
    pub mailbox_reads: Vec<Duration>,
    /// Every reply or answer that was not the wanted one, and every connection that broke.
    pub refusals: Vec<String>,
}

impl VictimReport {
    /// Adds what became of other mail.
    fn merge(mut self, other: Self) -> Self {
        self.mails += other.mails;
        self.refusals.extend(other.refusals);
        self.sends.extend(other.sends);
        self.polls.extend(other.polls);
        self.events.extend(other.events);
        self.reads.extend(other.reads);
        self.mailbox_reads.extend(other.mailbox_reads);
        self
    }

    /// Asserts that nothing was refused, and that each mail was accepted, received in both ways, and read in both ways.
    ///
    /// # Panics
    /// Something was refused, or a mail is missing.
    pub fn assert_undisturbed(&self, beside: &str) {
        assert!(self.refusals.is_empty(), "beside {beside}: {:#?}", self.refusals);
        let counts = [&self.sends, &self.polls, &self.events, &self.reads, &self.mailbox_reads].map(Vec::len);
        assert!(self.mails > 0 && counts == [self.mails; 5], "beside {beside}: {counts:?} of {}", self.mails);
    }
}

/// The mails of a run, by their subject.
#[derive(Debug, Default)]
struct Progress {
    mails: BTreeMap<String, MailProgress>,
    refusals: Vec<String>,
}

#[derive(Debug, Default)]
struct MailProgress {
    send: Option<Duration>,
    accepted_at: Option<Instant>,
    poll_began_at: Option<Instant>,
    polled_at: Option<Instant>,
    event_at: Option<Instant>,
    read: Option<Duration>,
    mailbox_read: Option<Duration>,
}

impl MailProgress {
    /// Whether nothing more is to come: it was not accepted, or it was received and read in both ways.
    fn is_complete(&self) -> bool {
        let read = self.read.and(self.mailbox_read);
        self.accepted_at.is_none() || self.polled_at.and(self.event_at).is_some() && read.is_some()
    }
}

/// One run of the victim with one of its mailboxes: what its tasks share.
struct Run<'a> {
    victim: &'a Victim,
    /// Number of the mailbox.
    number: usize,
    /// What the subjects of its mails begin with. Others may send to its address, too.
    label: String,
    progress: Mutex<Progress>,
}

impl Victim {
    /// The client of a target.
    ///
    /// # Panics
    /// Postgres does not answer.
    pub async fn new(target: &AttackTarget) -> Self {
        // A connection for each request: it must get one, too.
        let client = reqwest::Client::builder()
            .no_proxy()
            .local_address(IpAddr::from(target.victim_address()))
            .pool_max_idle_per_host(0)
            .build()
            .expect("an HTTP client can be built");
        let mut tokens = Vec::new();
        for _ in &target.victim_mailboxes {
            let of_mailbox = target.tokens(&target.victim, TokenKind::Live, 3).await;
            tokens.push(of_mailbox.try_into().expect("there are three tokens"));
        }
        Self { target: target.clone(), client, tokens }
    }

    /// Sends mail to each mailbox until then, and waits until it has read all of it.
    ///
    /// # Panics
    /// An answer is not as the OpenAPI document says.
    pub async fn run(&self, until: tokio::time::Instant) -> VictimReport {
        let runs = (0..self.tokens.len()).map(|number| Run::new(self, number).report(until));
        join_all(runs).await.into_iter().fold(VictimReport::default(), VictimReport::merge)
    }
}

impl<'a> Run<'a> {
    fn new(victim: &'a Victim, number: usize) -> Self {
        let label = format!("calm {:08x} ", chance::uuid().as_fields().0);
        Self { victim, number, label, progress: Mutex::default() }
    }

    /// Sends mail until then, and waits until all of it is read.
    async fn report(self, until: tokio::time::Instant) -> VictimReport {
        let (read_later, to_read) = unbounded_channel();
        let stream = self.open_stream(None).await;
        let since = stream.as_ref().map(|stream| stream.last_event_id().to_owned()).unwrap_or_default();
        let sending = async {
            let mails = self.send_mails(until).await;
            let all_read = async {
                while !self.progress().mails.values().all(MailProgress::is_complete) {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            // What is missing then is missing in the report.
            let _ = timeout(PATIENCE, all_read).await;
            mails
        };
        let waiting = async {
            tokio::join!(self.follow_events(stream), self.poll(since, read_later), self.read_mails(to_read))
        };
        let mails = tokio::select! {
            mails = sending => mails,
            _ = waiting => unreachable!("it waits until all is read"),
        };
        self.into_report(mails)
    }

    fn mailbox(&self) -> &Mailbox {
        &self.victim.target.victim_mailboxes[self.number]
    }

    /// A request with one of the tokens.
    fn get(&self, path: &str, token: usize) -> Request {
        let Victim { target, client, tokens } = self.victim;
        Request::new(client, Method::GET, &target.url(path)).live(&tokens[self.number][token])
    }

    /// A request with the JWT of the mailbox.
    fn get_mailbox(&self, path: &str) -> Request {
        let Victim { target, client, .. } = self.victim;
        Request::new(client, Method::GET, &target.url(path)).bearer(&self.mailbox().jwt)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self, what: impl Into<String>) {
        self.progress().refusals.push(what.into());
    }

    /// Records a mail of the victim as received; `false` if it was before, or is another's.
    fn received(&self, mail: &Value, at: fn(&mut MailProgress) -> &mut Option<Instant>) -> bool {
        let subject = mail["subject"].as_str().unwrap_or_default();
        if !subject.starts_with(&self.label) {
            return false;
        }
        let mut progress = self.progress();
        let at = at(progress.mails.entry(subject.to_owned()).or_default());
        let is_new = at.is_none();
        at.get_or_insert_with(Instant::now);
        is_new
    }

    /// Sends each mail when it is due, whatever the earlier ones wait for; how many.
    async fn send_mails(&self, until: tokio::time::Instant) -> usize {
        // Each mailbox in its turn.
        let share = self.number as f64 / self.victim.tokens.len() as f64;
        let start = tokio::time::Instant::now() + EVERY.mul_f64(share);
        let due = |number: u32| start + EVERY * number;
        let count = (0..).take_while(|&number| due(number) < until).count();
        let mails = stream::iter((0..).take(count)).for_each_concurrent(None, |number| {
            // At a random moment of its turn: an attack that is as regular would meet either every mail or none.
            let due = due(number) + EVERY.mul_f64(chance::factor(0.0..=1.0));
            async move {
                sleep_until(due).await;
                if let Err(refusal) = self.send_mail(number).await {
                    self.refused(format!("mail {number}: {refusal}"));
                }
            }
        });
        mails.await;
        count
    }

    async fn send_mail(&self, number: u32) -> Result<(), String> {
        let (target, subject) = (&self.victim.target, format!("{}{number}", self.label));
        self.progress().mails.entry(subject.clone()).or_default();
        let started = Instant::now();
        let stream = connect(target.listeners.smtp, target.victim_address(), None).await;
        let mut client = SmtpClient::from_stream(stream.map_err(|error| format!("not connected: {error}"))?);
        for (command, code) in [("", 220), ("EHLO client.example\r\n", 250)] {
            client.send(command).await;
            let reply = client.try_reply().await.ok_or("the server closed")?;
            if reply.code != code {
                return Err(format!("{command:?}: {reply:?}"));
            }
        }
        let mail = message("Ada <ada@client.example>", &subject, "quite small");
        let reply = client.try_transact("ada@client.example", &[&self.mailbox().address], &mail).await;
        let reply = reply.ok_or("the server closed in a mail transaction")?;
        if reply.code != 250 {
            return Err(format!("{reply:?}"));
        }
        {
            let mut progress = self.progress();
            let mail = progress.mails.entry(subject).or_default();
            (mail.send, mail.accepted_at) = (Some(started.elapsed()), Some(Instant::now()));
        }
        client.send("QUIT\r\n").await;
        Ok(())
    }

    /// Opens a stream, and reads its first id.
    async fn open_stream(&self, last_event_id: Option<&str>) -> Option<EventStream> {
        let path = format!("/v1/sse/addr?address={}", percent(&self.mailbox().address));
        let mut request = self.get(&path, 1);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let mut stream = match EventStream::try_open(request).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(answer)) => {
                self.refused(format!("stream: {} {}", answer.status, answer.text()));
                return None;
            }
            Err(error) => {
                self.refused(format!("stream: {error}"));
                return None;
            }
        };
        while stream.last_event_id().is_empty() {
            if stream.try_block().await.is_none() {
                self.refused("stream: it ended before it began");
                return None;
            }
        }
        Some(stream)
    }

    /// Follows a stream, and opens it again where it ends.
    async fn follow_events(&self, mut stream: Option<EventStream>) {
        let mut last_event_id = None;
        loop {
            if let Some(open) = &mut stream {
                while let Some(event) = open.try_next().await {
                    let mail = serde_json::from_str(&event.data).expect("the data of an event is JSON");
                    self.received(&mail, |mail| &mut mail.event_at);
                    last_event_id = Some(event.id);
                }
                self.refused("stream: it ended");
            }
            sleep(PACE).await;
            stream = self.open_stream(last_event_id.as_deref()).await;
        }
    }

    /// Follows long-polls, and passes on the ids of new mails.
    async fn poll(&self, mut since: String, read_later: UnboundedSender<(String, String)>) {
        let mut pace = paced();
        loop {
            pace.tick().await;
            let path = format!("/v1/inbox/{}?limit=50&since={since}", percent(&self.mailbox().address));
            let began_at = Instant::now();
            match self.get(&path, 0).try_send().await {
                Ok(answer) if answer.status == 200 => {
                    let body = answer.json();
                    for mail in body["emails"].as_array().expect("emails is a list").iter().rev() {
                        if self.received(mail, |mail| &mut mail.polled_at) {
                            let text = |key: &str| mail[key].as_str().unwrap_or_default().to_owned();
                            let subject = text("subject");
                            if let Some(mail) = self.progress().mails.get_mut(&subject) {
                                mail.poll_began_at = Some(began_at);
                            }
                            // The receiver is there as long as this task.
                            let _ = read_later.send((text("id"), subject));
                        }
                    }
                    body["next_since"].as_str().expect("next_since is a text").clone_into(&mut since);
                }
                Ok(answer) if answer.status == 204 => {
                    answer.header("x-next-since").clone_into(&mut since);
                }
                Ok(answer) => self.refused(format!("long-poll: {} {}", answer.status, answer.text())),
                Err(error) => self.refused(format!("long-poll: {error}")),
            }
        }
    }

    /// Reads the mails that a long-poll answered.
    async fn read_mails(&self, mut to_read: UnboundedReceiver<(String, String)>) {
        let mut pace = paced();
        while let Some((id, subject)) = to_read.recv().await {
            pace.tick().await;
            let by_token = self.get(&format!("/v1/email/{id}"), 2);
            self.read_mail(by_token, &subject, |mail| &mut mail.read).await;
            let by_jwt = self.get_mailbox(&format!("/api/messages/{id}"));
            self.read_mail(by_jwt, &subject, |mail| &mut mail.mailbox_read).await;
        }
    }

    async fn read_mail(
        &self,
        request: Request,
        subject: &str,
        read: fn(&mut MailProgress) -> &mut Option<Duration>,
    ) {
        let started = Instant::now();
        let answer = request.try_send().await;
        let elapsed = started.elapsed();
        match answer {
            Ok(answer) if answer.status == 200 => {
                assert_eq!(answer.json()["subject"], subject);
                *read(self.progress().mails.entry(subject.to_owned()).or_default()) = Some(elapsed);
            }
            Ok(answer) => self.refused(format!("read {subject}: {} {}", answer.status, answer.text())),
            Err(error) => self.refused(format!("read {subject}: {error}")),
        }
    }

    fn into_report(self, mails: usize) -> VictimReport {
        let progress = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut report = VictimReport { mails, refusals: progress.refusals, ..VictimReport::default() };
        for mail in progress.mails.into_values() {
            let Some(accepted_at) = mail.accepted_at else { continue };
            // A waiter may be answered before the sender has read its reply.
            let since = |at: Instant| at.saturating_duration_since(accepted_at);
            let poll_began = mail.poll_began_at.map_or(Duration::ZERO, since);
            report.sends.extend(mail.send);
            report.polls.extend(mail.polled_at.map(|at| since(at).saturating_sub(poll_began)));
            report.events.extend(mail.event_at.map(since));
            report.reads.extend(mail.read);
            report.mailbox_reads.extend(mail.mailbox_read);
        }
        report
    }
}

/// Ticks as fast as a token may be used, also after a late one.
fn paced() -> Interval {
    let mut ticks = interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
