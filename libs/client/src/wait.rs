//! Waits of any length, out of calls of less than a minute: what lies between may cut connections on which nothing is
//! sent for longer. A call that is cut is repeated from the last cursor, so nothing is missed.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::answer::{Code, EmailSummary, FoundEmail};
use crate::client::{Client, WaitAnswer};
use crate::error::Error;
use crate::request::{Feature, Scope, WaitRequest};
use crate::selection::{LinkFilter, SafeLink, is_safe_code};
use crate::token::LiveToken;

/// The longest wait.
pub const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Seconds of one call.
const CALL_SECONDS: u64 = 50;
/// How long a call is repeated that is refused for now, or finds no server where there was one, even if the wait is
/// shorter.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after a call that was cut, or ended early without reaching anything.
const PAUSE: Duration = Duration::from_millis(500);
/// How much longer than a wait the token lives that was minted for it.
const TOKEN_MARGIN: Duration = Duration::from_secs(30);

/// How a wait ended.
#[derive(Debug)]
pub enum WaitOutcome<T> {
    /// With a mail.
    Found(T),
    /// Without one in time.
    Nothing {
        /// Where to continue; empty where no call was answered.
        next_since: String,
    },
}

/// The code of a mail.
#[derive(Debug, Clone, Serialize)]
pub struct FoundCode {
    /// 4 to 12 of `A-Z a-z 0-9 -`.
    pub code: String,
    /// From 0 to 1.
    pub confidence: f64,
    /// `subject`, `text` or `html`.
    pub source: String,
    /// The mail.
    pub email: EmailSummary,
    /// The cursor behind it.
    pub next_since: String,
}

/// The link of a mail.
#[derive(Debug, Clone, Serialize)]
pub struct FoundLink {
    /// The link.
    #[serde(flatten)]
    pub link: SafeLink,
    /// The mail.
    pub email: EmailSummary,
    /// The cursor behind it.
    pub next_since: String,
}

/// How a wait for a link ended.
#[derive(Debug)]
pub enum LinkOutcome {
    /// With a link.
    Found(Box<FoundLink>),
    /// With a mail whose links lead to other hosts than was requested.
    OtherHost {
        /// Where they lead.
        hosts: Vec<String>,
        /// The cursor behind the mail.
        next_since: String,
    },
}

impl Client {
    /// Waits for a mail, for at most `timeout`; looks once where that is zero.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wait(
        &self,
        request: &WaitRequest,
        timeout: Duration,
    ) -> Result<WaitOutcome<FoundEmail>, Error> {
        Wait::new(self, request.clone(), timeout).run().await
    }

    /// Waits for a mail with a code that is safe to hand on.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wait_for_code(
        &self,
        request: &WaitRequest,
        timeout: Duration,
    ) -> Result<WaitOutcome<FoundCode>, Error> {
        let request = request.clone().with(Feature::Code);
        let found = self.wait_until(request, timeout, |found| {
            let FoundEmail { email, extraction, next_since } = found;
            let best = extraction.codes.into_iter().find(|code| is_safe_code(&code.code));
            best.map(|Code { code, confidence, source, .. }| FoundCode {
                code,
                confidence,
                source,
                email,
                next_since,
            })
        });
        found.await
    }

    /// Waits for a mail with a link of the filter's kind. Links to other hosts than the filter's end the wait: a mail
    /// that was not meant is no reason to wait for another.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wait_for_link(
        &self,
        request: &WaitRequest,
        filter: &LinkFilter,
        timeout: Duration,
    ) -> Result<WaitOutcome<LinkOutcome>, Error> {
        let request = request.clone().with(Feature::Link);
        let found = self.wait_until(request, timeout, |found| {
            let FoundEmail { email, extraction, next_since } = found;
            let links = filter.of_kind(&extraction.links);
            if links.is_empty() {
                return None;
            }
            let mut hosts: Vec<String> = links.iter().map(|link| link.host.clone()).collect();
            hosts.dedup();
            Some(match links.into_iter().find(|link| filter.allows(link)) {
                Some(link) => LinkOutcome::Found(Box::new(FoundLink { link, email, next_since })),
                None => LinkOutcome::OtherHost { hosts, next_since },
            })
        });
        found.await
    }

    /// Waits for mail until `select` takes something from one.
    async fn wait_until<T>(
        &self,
        mut request: WaitRequest,
        timeout: Duration,
        select: impl Fn(FoundEmail) -> Option<T>,
    ) -> Result<WaitOutcome<T>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let found = match Wait::new(self, request.clone(), left).run().await? {
                WaitOutcome::Found(found) => found,
                WaitOutcome::Nothing { next_since } => return Ok(WaitOutcome::Nothing { next_since }),
            };
            request.since = Some(found.next_since.clone());
            if let Some(selected) = select(found) {
                return Ok(WaitOutcome::Found(selected));
            }
        }
    }
}

/// A wait that is going on.
struct Wait<'a> {
    client: &'a Client,
    request: WaitRequest,
    /// When it ends.
    deadline: Instant,
    /// Until when a call is repeated that is refused for now.
    patience: Instant,
    /// Whether a server was there.
    connected: bool,
    /// A token for this wait alone, because that of the client has another one open.
    minted: Option<LiveToken>,
}

impl<'a> Wait<'a> {
    fn new(client: &'a Client, request: WaitRequest, timeout: Duration) -> Self {
        let now = Instant::now();
        let timeout = timeout.min(WAIT_MAX);
        Self {
            client,
            request,
            deadline: now + timeout,
            patience: now + timeout.max(PATIENCE),
            connected: false,
            minted: None,
        }
    }

    async fn run(mut self) -> Result<WaitOutcome<FoundEmail>, Error> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let seconds = left.as_millis().div_ceil(1_000).min(CALL_SECONDS.into());
            let client = self.minted.clone().map(|token| self.client.with_token(token));
            let client = client.as_ref().unwrap_or(self.client);
            let began = Instant::now();
            match client.wait_once(&self.request, u64::try_from(seconds).unwrap_or(CALL_SECONDS)).await {
                Ok(WaitAnswer::Found(found)) => return Ok(WaitOutcome::Found(*found)),
                Ok(WaitAnswer::Nothing(cursor)) => {
                    if let Some(next_since) = self.advance(cursor, began).await {
                        return Ok(WaitOutcome::Nothing { next_since });
                    }
                }
                Err((error, pause)) => self.recover(error, pause).await?,
            }
        }
    }

    /// Continues from the cursor of a call without mail; returns it where the wait is over.
    async fn advance(&mut self, cursor: String, began: Instant) -> Option<String> {
        self.connected = true;
        let is_over = Instant::now() >= self.deadline;
        if is_over {
            return Some(if cursor.is_empty() {
                self.request.since.take().unwrap_or_default()
            } else {
                cursor
            });
        }
        let reached = !cursor.is_empty() && self.request.since.as_ref() != Some(&cursor);
        if reached {
            self.request.since = Some(cursor);
        } else if began.elapsed() < PAUSE {
            // A server that stops answers at once.
            sleep(PAUSE).await;
        }
        None
    }

    /// Makes the next call possible, after one that failed.
    async fn recover(&mut self, error: Error, pause: Option<Duration>) -> Result<(), Error> {
        if let Error::Unreachable { connected, .. } = &error {
            self.connected |= connected;
            if !self.connected {
                return Err(error);
            }
            return self.pause(PAUSE, error).await;
        }
        self.connected = true;
        if self.minted.is_some() && matches!(error.code(), "invalid_token" | "session_expired") {
            self.minted = None;
            return self.pause(Duration::ZERO, error).await;
        }
        if error.code() == "token_busy" && self.minted.is_none() && self.mint().await {
            return Ok(());
        }
        match pause {
            Some(pause) => self.pause(pause, error).await,
            None => Err(error),
        }
    }

    /// Waits before the next call; fails with the error of the last one where there is no time for another.
    async fn pause(&self, pause: Duration, error: Error) -> Result<(), Error> {
        if Instant::now() + pause >= self.patience {
            return Err(error);
        }
        sleep(pause).await;
        Ok(())
    }

    /// Mints a token for this wait. A token that may not is waited for.
    async fn mint(&mut self) -> bool {
        let Scope::Address(address) = &self.request.scope else { return false };
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.minted =
            self.client.mint_token(address, left + TOKEN_MARGIN).await.ok().map(|minted| minted.token);
        self.minted.is_some()
    }
}

#[cfg(test)]
mod tests;
