//! What the extractors authenticate with.

use std::sync::Arc;

use axum::http::request::Parts;
use jiff::Timestamp;
use tempmail_bus::RateKey;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_store::{ApiToken, LiveToken, Mailbox, SessionToken, Store, StoreError};
use uuid::Uuid;

use super::known_tokens::KnownTokens;
use super::last_used::LastUsedRecorder;
use super::mailbox_token::{MailboxTokens, VerifiedMailboxToken};
use super::pro_session::{ProSession, ProSessions};
use crate::http::client::Client;
use crate::http::error::ApiError;
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
