//! What an open stream, a long-poll or an answer of many messages rests on.

use jiff::Timestamp;
use tempmail_model::token::TokenKind;
use tempmail_store::Store;
use uuid::Uuid;

use super::authenticator::Authenticator;
use super::caller::ProCaller;
use super::drop_in_caller::DropInCaller;
use super::jwt::ProSession;
use super::live_caller::LiveCaller;
use crate::http::error::ApiError;

/// The API token of a subscriber, or the session of one.
#[derive(Debug, Clone)]
pub(crate) struct SubscriberCredential {
    /// The token: open waits and streams count by it.
    pub(crate) token: Uuid,
    /// The tenant, which was not suspended when this was last checked.
    pub(crate) tenant: Uuid,
    /// When the token or the session expires.
    pub(crate) expires_at: Option<Timestamp>,
    presented: Presented,
}

#[derive(Debug, Clone)]
enum Presented {
    Token(TokenKind),
    /// The token that minted it; in memory of its own, as a session: most subscribers have neither.
    Minted(Box<Uuid>),
    Session(Box<ProSession>),
}

impl From<LiveCaller> for SubscriberCredential {
    fn from(LiveCaller { token, tenant, expires_at, parent }: LiveCaller) -> Self {
        let presented = match parent {
            None => Presented::Token(TokenKind::Live),
            Some(parent) => Presented::Minted(Box::new(parent)),
        };
        Self { token, tenant, expires_at, presented }
    }
}

impl<S> From<&DropInCaller<S>> for SubscriberCredential {
    fn from(caller: &DropInCaller<S>) -> Self {
        let DropInCaller { token, tenant, expires_at, .. } = *caller;
        Self { token, tenant, expires_at, presented: Presented::Token(TokenKind::Live) }
    }
}

impl From<ProCaller> for SubscriberCredential {
    fn from(ProCaller { token, tenant, session, expires_at }: ProCaller) -> Self {
        let presented = match session {
            None => Presented::Token(TokenKind::Pro),
            Some(session) => Presented::Session(Box::new(session)),
        };
        Self { token, tenant, expires_at, presented }
    }
}

impl SubscriberCredential {
    /// What it ends with beside its token and tenant: the session that was presented, or the token that minted it.
    pub(crate) fn further_subject(&self) -> Option<Uuid> {
        match &self.presented {
            Presented::Token(_) => None,
            Presented::Minted(parent) => Some(**parent),
            Presented::Session(session) => Some(session.id),
        }
    }

    /// Reads from `store` whether it is still accepted, and until when.
    ///
    /// # Errors
    /// 401, 403 or 440 as for a new request; Postgres is unavailable.
    pub(crate) async fn recheck(&mut self, auth: &Authenticator, store: &Store) -> Result<(), ApiError> {
        self.expires_at = match &self.presented {
            Presented::Token(kind) => auth.find_token_by_id(store, *kind, self.token).await?.expires_at,
            Presented::Minted(_) => auth.find_minted_token(store, self.token).await?.expires_at(),
            Presented::Session(session) => {
                let token = auth.find_token_by_session(store, session).await?;
                [token.expires_at, Some(session.expires_at)].into_iter().flatten().min()
            }
        };
        Ok(())
    }
}
