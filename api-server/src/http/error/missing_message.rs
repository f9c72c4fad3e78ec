//! The answer for the id of a message that the caller can't read.

use jiff::Timestamp;
use tempmail_model::id::id_time;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

/// How a request for an unreadable message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingMessage {
    /// 410: the id is old enough for its message to have expired.
    Expired,
    /// 404.
    NotFound,
}

impl MissingMessage {
    /// Decides by the id's own time alone, so that the answer does not reveal messages of others:
    /// expired if the id is at least as old as the shortest retention.
    pub(crate) fn of(id: Uuid, now: Timestamp) -> Self {
        let expired = id_time(id).is_some_and(|created| RetentionClass::SHORTEST.expires_at(created) <= now);
        if expired { Self::Expired } else { Self::NotFound }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tempmail_model::id::new_id;

    use super::*;

    #[test]
    fn decides_between_404_and_410_by_the_time_of_the_id() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let created = |minutes: i64| new_id(now - SignedDuration::from_mins(minutes));
        assert_eq!(MissingMessage::of(created(60), now), MissingMessage::Expired);
        assert_eq!(MissingMessage::of(created(59), now), MissingMessage::NotFound);
        assert_eq!(MissingMessage::of(created(-10), now), MissingMessage::NotFound);
        assert_eq!(MissingMessage::of(Uuid::from_u128(7), now), MissingMessage::NotFound);
    }
}
