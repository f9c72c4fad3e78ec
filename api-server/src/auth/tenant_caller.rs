//! Callers that act for a tenant, on whichever surface.

use axum::response::IntoResponse;
use jiff::Timestamp;
use tempmail_store::Actor;
use uuid::Uuid;

use super::live_caller::LiveCaller;
use super::pro_caller::ProCaller;
use crate::http::error::{ApiError, V1Error};

/// A caller whose API token belongs to a tenant.
pub(crate) trait TenantCaller: Send + Sync + 'static {
    /// The form of errors on the caller's surface.
    type Error: From<ApiError> + IntoResponse + Send;

    /// The tenant, which is not suspended.
    fn tenant(&self) -> Uuid;

    /// The token that was presented, or that the session belongs to.
    fn token(&self) -> Uuid;

    /// The caller in the audit trail.
    fn actor(&self) -> Actor;

    /// When the tokens expire that the caller makes, at the latest. What a live token makes does not outlive it; what a
    /// Pro token makes is its tenant's.
    fn made_tokens_end_at(&self) -> Option<Timestamp>;
}

impl TenantCaller for ProCaller {
    type Error = ApiError;

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn token(&self) -> Uuid {
        self.token
    }

    fn actor(&self) -> Actor {
        if self.session.is_some() { Actor::Session(self.token) } else { Actor::Token(self.token) }
    }

    fn made_tokens_end_at(&self) -> Option<Timestamp> {
        None
    }
}

impl TenantCaller for LiveCaller {
    type Error = V1Error;

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn token(&self) -> Uuid {
        self.token
    }

    fn actor(&self) -> Actor {
        Actor::Token(self.token)
    }

    fn made_tokens_end_at(&self) -> Option<Timestamp> {
        self.expires_at
    }
}
