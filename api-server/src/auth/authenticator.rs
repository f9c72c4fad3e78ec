//! What the extractors authenticate with.

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use tempmail_bus::RateKey;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_store::{ApiToken, LiveToken, Mailbox, SessionToken, Store, StoreError};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use uuid::Uuid;

use super::jwt::{MailboxTokens, ProSession, ProSessions, VerifiedMailboxToken};
use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::http::expiring_set::ExpiringSet;
use crate::http::rate_limit::RequestLimits;

/// Verifies the credentials of all surfaces.
pub(crate) struct Authenticator {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: Arc<RequestLimits>,
    pub(crate) mailbox_tokens: MailboxTokens,
    pub(crate) pro_sessions: ProSessions,
    pub(crate) last_used: LastUsedRecorder,
    known: KnownTokens,
}

impl Authenticator {
    /// With JWT keys derived from `keys`, which has at least one. Starts a background task, which ends
    /// when the authenticator is dropped.
    pub(crate) fn start(
        store: Store,
        clock: Arc<dyn Clock>,
        limits: Arc<RequestLimits>,
        keys: &[MasterKey],
    ) -> Self {
        Self {
            mailbox_tokens: MailboxTokens::new(keys),
            pro_sessions: ProSessions::new(keys),
            last_used: LastUsedRecorder::start(store.clone()),
            known: KnownTokens::new(),
            store,
            clock,
            limits,
        }
    }

    /// The Pro token with this text, if it is accepted now.
    ///
    /// # Errors
    /// 401, 403 or 440; Postgres is unavailable.
    pub(crate) async fn find_pro_token(&self, client: Client, presented: &str) -> Result<ApiToken, ApiError> {
        let kind = TokenKind::Pro;
        let hash = TokenHash::from_presented(kind, presented).ok_or(ApiError::InvalidToken)?;
        let found = self.store.find_token(kind, hash);
        let token = self.judge(client, key_of(kind.as_str(), hash), found, check_token).await?;
        self.last_used.record_token(&token, self.clock.now());
        Ok(token)
    }

    /// The live token with this text, of a tenant or minted, if it is accepted now.
    ///
    /// # Errors
    /// 401, 403 or 440; Postgres is unavailable.
    pub(super) async fn find_live_token(
        &self,
        client: Client,
        presented: &str,
    ) -> Result<LiveToken, ApiError> {
        let kind = TokenKind::Live;
        let hash = TokenHash::from_presented(kind, presented).ok_or(ApiError::InvalidToken)?;
        let found = self.store.find_live_token(hash);
        let live = self.judge(client, key_of(kind.as_str(), hash), found, check_live_token).await?;
        // A minted token is a use of its parent.
        self.last_used.record_token(&live.token, self.clock.now());
        Ok(live)
    }

    /// The token for a drop-in surface with this text, if it is accepted now.
    ///
    /// # Errors
    /// 401, 403 or 440; Postgres is unavailable.
    pub(super) async fn find_surface_token(
        &self,
        client: Client,
        surface: DropInSurface,
        presented: &str,
    ) -> Result<ApiToken, ApiError> {
        let hash = TokenHash::from_presented_on_surface(presented).ok_or(ApiError::InvalidToken)?;
        let found = self.store.find_surface_token(surface, hash);
        let token = self.judge(client, key_of(surface.as_str(), hash), found, check_token).await?;
        self.last_used.record_token(&token, self.clock.now());
        Ok(token)
    }

    /// What the store finds for a credential, if `check` accepts it.
    async fn judge<T>(
        &self,
        client: Client,
        credential: RateKey,
        find: impl Future<Output = Result<Option<T>, StoreError>>,
        check: fn(&T, Timestamp) -> Result<(), ApiError>,
    ) -> Result<T, ApiError> {
        if self.known.is_unknown(credential) {
            return Err(ApiError::InvalidToken);
        }
        let turn = self.known.turn(&self.limits, client, credential).await;
        let found = find.await?;
        drop(turn);
        let Some(token) = found else {
            self.known.record_unknown(credential);
            return Err(ApiError::InvalidToken);
        };
        check(&token, self.clock.now())?;
        self.known.record_accepted(credential);
        Ok(token)
    }

    /// The Pro token that a presented session belongs to, if both are accepted now.
    pub(super) async fn find_token_of_session(
        &self,
        client: Client,
        session: &ProSession,
    ) -> Result<ApiToken, ApiError> {
        let turn = self.known.turn(&self.limits, client, session.token.into()).await;
        let found = self.find_token_by_session(&self.store, session).await?;
        drop(turn);
        self.known.record_accepted(session.token.into());
        Ok(found)
    }

    /// The Pro token that a session belongs to, if both are accepted now, as `store` has them.
    pub(super) async fn find_token_by_session(
        &self,
        store: &Store,
        session: &ProSession,
    ) -> Result<ApiToken, ApiError> {
        let found = store.find_session_token(session.token, session.id).await?;
        let SessionToken { token, ended } = found.ok_or(ApiError::InvalidToken)?;
        let now = self.clock.now();
        check_token(&token, now)?;
        let is_over = ended
            || session.expires_at <= now
            || token.sessions_from.is_some_and(|from| session.issued_at < from);
        if is_over { Err(ApiError::SessionExpired) } else { Ok(token) }
    }

    /// The API token of this kind and id, if it is accepted now, as `store` has it.
    pub(super) async fn find_token_by_id(
        &self,
        store: &Store,
        kind: TokenKind,
        id: Uuid,
    ) -> Result<ApiToken, ApiError> {
        let token = store.find_token_by_id(kind, id).await?.ok_or(ApiError::InvalidToken)?;
        check_token(&token, self.clock.now())?;
        Ok(token)
    }

    /// The minted token of this id, if it is accepted now, as `store` has it.
    pub(super) async fn find_minted_token(&self, store: &Store, id: Uuid) -> Result<LiveToken, ApiError> {
        let live = store.find_minted_token(id).await?.ok_or(ApiError::InvalidToken)?;
        check_live_token(&live, self.clock.now())?;
        Ok(live)
    }

    /// The mailbox of a presented JWT, if it is accepted now.
    pub(crate) async fn find_mailbox(
        &self,
        client: Client,
        token: VerifiedMailboxToken,
    ) -> Result<Mailbox, ApiError> {
        let turn = self.known.turn(&self.limits, client, token.mailbox.into()).await;
        let found = self.store.find_mailbox(token.mailbox).await?;
        drop(turn);
        let mailbox =
            found.filter(|mailbox| mailbox.password_epoch == token.epoch).ok_or(ApiError::InvalidToken)?;
        if mailbox.suspended {
            return Err(ApiError::AccountDisabled);
        }
        self.known.record_accepted(token.mailbox.into());
        Ok(mailbox)
    }
}

/// The client of a request, which the middleware has determined.
///
/// # Errors
/// There is no middleware: our fault.
pub(super) fn client_of(parts: &Parts) -> Result<Client, ApiError> {
    parts.extensions.get::<Client>().copied().ok_or(ApiError::Internal)
}

/// The key of a token where it is accepted: what is unknown on one surface may be known on another.
fn key_of(accepted_on: &str, hash: TokenHash) -> RateKey {
    RateKey::from_parts(&[accepted_on.as_bytes(), hash.as_bytes()])
}

/// Whether an API token is accepted at `now`.
///
/// # Errors
/// The first reason to reject the token: revoked or inactive, expired, or its tenant suspended.
fn check_token(token: &ApiToken, now: Timestamp) -> Result<(), ApiError> {
    if token.revoked_at.is_some() || !token.active {
        Err(ApiError::InvalidToken)
    } else if token.expires_at.is_some_and(|expires| expires <= now) {
        Err(ApiError::SessionExpired)
    } else if token.suspended {
        Err(ApiError::AccountDisabled)
    } else {
        Ok(())
    }
}

/// Whether a live token is accepted at `now`, and, if it is minted, its parent.
///
/// # Errors
/// As [`check_token`].
fn check_live_token(live: &LiveToken, now: Timestamp) -> Result<(), ApiError> {
    check_token(&ApiToken { expires_at: live.expires_at(), ..live.token }, now)
}

/// How long an unknown token counts as unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
/// How long a credential that was accepted needs to wait for no turn.
const ACCEPTED_FOR: Duration = Duration::from_secs(10 * 60);
/// Keys of each set.
const KEYS_MAX: usize = 10_000;
/// Credentials of suspect clients that the store judges at a time.
const TURNS: usize = 2;

/// What was lately found out about credentials, so that a flood of wrong ones costs the store little. It gives nobody a
/// right: a credential that may be good is judged by the store each time.
pub(super) struct KnownTokens {
    unknown: ExpiringSet<RateKey>,
    accepted: ExpiringSet<RateKey>,
    turns: Semaphore,
}

impl KnownTokens {
    pub(super) fn new() -> Self {
        Self {
            unknown: ExpiringSet::new(KEYS_MAX),
            accepted: ExpiringSet::new(KEYS_MAX),
            turns: Semaphore::new(TURNS),
        }
    }

    /// Whether the store had no such token within the last second.
    pub(super) fn is_unknown(&self, credential: RateKey) -> bool {
        self.unknown.contains(&credential)
    }

    /// Records that the store has no such token.
    pub(super) fn record_unknown(&self, credential: RateKey) {
        self.unknown.insert(credential, UNKNOWN_FOR);
    }

    /// Records that a credential was accepted.
    pub(super) fn record_accepted(&self, credential: RateKey) {
        self.accepted.insert(credential, ACCEPTED_FOR);
    }

    /// Waits until the store may judge a credential. Only those wait that come from a suspect client and were not
    /// accepted lately; they take turns, and none is refused.
    pub(super) async fn turn(
        &self,
        limits: &RequestLimits,
        client: Client,
        credential: RateKey,
    ) -> Option<SemaphorePermit<'_>> {
        if !limits.is_suspect(client) || self.accepted.contains(&credential) {
            return None;
        }
        // The semaphore is never closed.
        self.turns.acquire().await.ok()
    }
}

/// A mailbox is recorded at most once in this time.
const MAILBOX_INTERVAL: SignedDuration = SignedDuration::from_hours(1);
/// A token is recorded at most once in this time.
const TOKEN_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// Records that may be queued.
const QUEUE_MAX: usize = 1024;

enum LastUse {
    Mailbox(Uuid, Timestamp),
    Token(Uuid, Timestamp),
}

/// Records when mailboxes and tokens were last used, in the background. Records are dropped while many are queued: only
/// the removal of unused mailboxes and the lists of tokens depend on them.
pub(crate) struct LastUsedRecorder(mpsc::Sender<LastUse>);

impl LastUsedRecorder {
    /// Starts the task that writes the records; it ends when the recorder is dropped.
    pub(super) fn start(store: Store) -> Self {
        let (sender, mut queued) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(async move {
            while let Some(last_use) = queued.recv().await {
                let written = match last_use {
                    LastUse::Mailbox(id, at) => store.touch_mailbox(id, at, MAILBOX_INTERVAL).await,
                    LastUse::Token(id, at) => store.touch_token(id, at, TOKEN_INTERVAL).await,
                };
                if written.is_err() {
                    tracing::debug!("a last use was not recorded");
                }
            }
        });
        Self(sender)
    }

    /// Records that a mailbox was signed in to or read.
    pub(crate) fn record_mailbox(&self, mailbox: &Mailbox, now: Timestamp) {
        if now.duration_since(mailbox.seen_at) >= MAILBOX_INTERVAL {
            self.enqueue(LastUse::Mailbox(mailbox.id, now));
        }
    }

    /// Records that a token was used.
    pub(super) fn record_token(&self, token: &ApiToken, now: Timestamp) {
        if token.last_used_at.is_none_or(|last| now.duration_since(last) >= TOKEN_INTERVAL) {
            self.enqueue(LastUse::Token(token.id, now));
        }
    }

    fn enqueue(&self, last_use: LastUse) {
        // The queue is full: the next use is recorded instead.
        let _ = self.0.try_send(last_use);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_revocation_before_expiry_and_expiry_before_suspension() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let mut token = ApiToken {
            id: Uuid::from_u128(1),
            tenant: Uuid::from_u128(2),
            suspended: true,
            active: false,
            last_used_at: None,
            expires_at: Some(now),
            revoked_at: Some(now),
            sessions_from: None,
        };
        assert_eq!(check_token(&token, now), Err(ApiError::InvalidToken));
        token.revoked_at = None;
        assert_eq!(check_token(&token, now), Err(ApiError::InvalidToken));
        token.active = true;
        assert_eq!(check_token(&token, now), Err(ApiError::SessionExpired));
        token.expires_at = None;
        assert_eq!(check_token(&token, now), Err(ApiError::AccountDisabled));
        token.suspended = false;
        assert_eq!(check_token(&token, now), Ok(()));
    }
}
