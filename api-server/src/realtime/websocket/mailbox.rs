//! The mail of one mailbox, for the holder of its JWT.

use jiff::Timestamp;
use tempmail_store::{Mailbox, MessageRow, ScanRange, ScanRequest};
use uuid::Uuid;

use crate::arrivals::Topic;
use crate::auth::VerifiedMailboxToken;
use crate::http::error::ApiError;
use crate::realtime::follower::{MailSource, RingKey, SourcePage};
use crate::state::AppState;

/// See the module.
#[derive(Debug)]
pub(super) struct MailboxSource {
    /// The mailbox, and until when it may be read.
    token: VerifiedMailboxToken,
    domain: Uuid,
    tenant: Option<Uuid>,
}

impl MailboxSource {
    /// The mail of `mailbox`, whose token this is.
    ///
    /// # Errors
    /// The token is no longer accepted.
    pub(super) fn new(
        token: VerifiedMailboxToken,
        mailbox: &Mailbox,
        now: Timestamp,
    ) -> Result<Self, ApiError> {
        check_token(&token, mailbox.password_epoch, mailbox.suspended, now)?;
        Ok(Self { token, domain: mailbox.domain, tenant: mailbox.tenant })
    }
}

impl MailSource for MailboxSource {
    fn topics(&self) -> Vec<Topic> {
        let mailbox = self.token.mailbox;
        let mut topics = vec![Topic::Inbox(mailbox), Topic::Rights(mailbox), Topic::Rights(self.domain)];
        topics.extend(self.tenant.map(Topic::Rights));
        topics
    }

    fn expires_at(&self) -> Option<Timestamp> {
        Some(self.token.expires_at)
    }

    fn ring_key(&self) -> Option<RingKey> {
        Some(RingKey { key: self.token.mailbox, owner: Some(self.token.mailbox) })
    }

    fn covers(&self, _row: &MessageRow) -> bool {
        true
    }

    /// Nothing beside what each read checks.
    async fn recheck(&mut self, _state: &AppState) -> Result<(), ApiError> {
        Ok(())
    }

    async fn read(&mut self, state: &AppState, scan: ScanRequest) -> Result<SourcePage, ApiError> {
        let (mailbox, now) = (self.token.mailbox, state.clock.now());
        // A socket begins now, so it never reads backwards.
        let (ScanRange::After(seq) | ScanRange::Before(seq)) = scan.range;
        let found = state.stream_store.scan_mailbox(mailbox, seq, scan.limit, now).await?;
        let found = found.ok_or(ApiError::InvalidToken)?;
        check_token(&self.token, found.password_epoch, found.suspended, now)?;
        let (generation, position) = (found.generation, found.position);
        Ok(SourcePage { rows: found.rows, position, generation, owner_changed: false })
    }
}

/// Whether a token is still accepted for its mailbox, as the store has it.
///
/// # Errors
/// [`ApiError::InvalidToken`], [`ApiError::AccountDisabled`].
pub(super) fn check_token(
    token: &VerifiedMailboxToken,
    epoch: i64,
    suspended: bool,
    now: Timestamp,
) -> Result<(), ApiError> {
    if epoch != token.epoch || token.expires_at <= now {
        Err(ApiError::InvalidToken)
    } else if suspended {
        Err(ApiError::AccountDisabled)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rejects_a_token_of_another_epoch_an_expired_one_and_a_suspended_tenant() {
        let expires_at: Timestamp = "2031-01-08T00:00:00Z".parse().unwrap();
        let before = expires_at - Duration::from_secs(1);
        let token = VerifiedMailboxToken { mailbox: Uuid::nil(), epoch: 3, expires_at };
        let rejected = |epoch, suspended, now| check_token(&token, epoch, suspended, now).unwrap_err();
        assert!(check_token(&token, 3, false, before).is_ok());
        assert!(matches!(rejected(3, true, before), ApiError::AccountDisabled));
        assert!(matches!(rejected(3, false, expires_at), ApiError::InvalidToken));
        assert!(matches!(rejected(4, true, before), ApiError::InvalidToken), "reveals no suspension");
    }
}
