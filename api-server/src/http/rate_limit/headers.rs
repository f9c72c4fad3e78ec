//! The `RateLimit` and `RateLimit-Policy` fields (draft-ietf-httpapi-ratelimit-headers).

use std::sync::{Arc, OnceLock};

use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use tempmail_bus::RateDecision;

use super::enforce;
use crate::http::error::ApiError;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The decision of a limit, recorded while a request is handled and written to its answer. One per
/// request.
#[derive(Clone, Default)]
pub(crate) struct RateLimitHeaders(Arc<OnceLock<(&'static str, RateDecision)>>);

impl RateLimitHeaders {
    /// Records the decision of the limit `name` with the request; the first one counts.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`] where the request exceeds the limit.
    pub(crate) fn enforce_in(
        extensions: &Extensions,
        name: &'static str,
        decision: RateDecision,
    ) -> Result<(), ApiError> {
        match extensions.get::<Self>() {
            Some(report) => report.enforce(name, decision),
            None => enforce(name, decision),
        }
    }

    /// Records the decision of the limit `name`; the first one counts.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`] where the request exceeds the limit.
    pub(crate) fn enforce(&self, name: &'static str, decision: RateDecision) -> Result<(), ApiError> {
        let _ = self.0.set((name, decision));
        enforce(name, decision)
    }

    /// Writes the fields, if a decision was recorded and the answer does not have those of the limit that refused it.
    pub(crate) fn write_to(&self, headers: &mut HeaderMap) {
        if let Some((name, decision)) = self.0.get()
            && !headers.contains_key(LIMIT)
        {
            write(name, *decision, headers);
        }
    }
}

/// Writes the fields of a decision of the limit `name`.
pub(crate) fn write(name: &str, decision: RateDecision, headers: &mut HeaderMap) {
    let window = decision.window.as_secs().max(1);
    let reset = decision.reset.as_secs() + u64::from(decision.reset.subsec_nanos() > 0);
    let policy = format!("\"{name}\";q={};w={window}", decision.limit);
    let limit = format!("\"{name}\";r={};t={reset}", decision.remaining);
    for (field, value) in [(POLICY, policy), (LIMIT, limit)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(field, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn writes_the_fields_of_the_draft() {
        let mut extensions = Extensions::new();
        let report = RateLimitHeaders::default();
        extensions.insert(report.clone());
        let decision = RateDecision {
            allowed: true,
            limit: 20,
            window: Duration::from_secs(1),
            remaining: 19,
            reset: Duration::from_millis(50),
            retry_after: Duration::ZERO,
        };
        RateLimitHeaders::enforce_in(&extensions, "client", decision).unwrap();
        let mut headers = HeaderMap::new();
        report.write_to(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"client\";q=20;w=1");
        assert_eq!(headers["ratelimit"], "\"client\";r=19;t=1");
    }
}
