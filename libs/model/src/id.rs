//! Ids: UUIDv7, which have the time of their creation in milliseconds. Expiry depends on it.

use jiff::Timestamp;
use uuid::{Builder, Uuid};

use crate::chance;

/// The owner of mail in shared inboxes.
pub const SHARED_OWNER: Uuid = Uuid::nil();

/// The built-in tenant `platform`, which owns mail to `postmaster` and `abuse` of system domains.
pub const PLATFORM_TENANT: Uuid = Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001);

/// Parts of a millisecond that the 12 bits after the version of an id tell apart.
const FRACTIONS: i128 = 1 << 12;

/// A new id with the time `at`. Ids are in the order of their times as far as those are a quarter of a microsecond
/// apart (RFC 9562 section 6.2, method 3), and random beyond that.
pub fn new_id(at: Timestamp) -> Uuid {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
    let mut beyond_millis = [0; 10];
    chance::fill(&mut beyond_millis);
    let fraction = at.as_nanosecond().rem_euclid(1_000_000) * FRACTIONS / 1_000_000;
    beyond_millis[..2].copy_from_slice(&u16::try_from(fraction).unwrap_or(0).to_be_bytes());
    Builder::from_unix_timestamp_millis(millis, &beyond_millis).into_uuid()
}

/// The time of an id; `None` if it is not a UUIDv7.
pub fn id_time(id: Uuid) -> Option<Timestamp> {
    if id.get_version_num() != 7 {
        return None;
    }
    let millis = i64::try_from(id.as_u128() >> 80).ok()?;
    Timestamp::from_millisecond(millis).ok()
}

/// The lowest id with the time `at`, as a bound for comparisons.
pub fn lowest_id(at: Timestamp) -> Uuid {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn an_id_has_its_time() {
        let at: Timestamp = "2026-11-21T10:00:00.123Z".parse().unwrap();
        let id = new_id(at);
        assert_eq!(id_time(id), Some(at));
        assert!(id >= lowest_id(at));
        assert!(id < lowest_id("2026-11-21T10:00:00.124Z".parse().unwrap()));
    }

    #[test]
    fn ids_of_a_millisecond_are_in_the_order_of_their_times() {
        let start: Timestamp = "2026-11-21T10:00:00.123Z".parse().unwrap();
        let ids: Vec<_> =
            (0..1_000).map(|micros| new_id(start + SignedDuration::from_micros(micros))).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|&id| id_time(id) == Some(start)));
    }

    #[test]
    fn ids_of_one_time_differ() {
        let at: Timestamp = "2026-11-21T10:00:00.123456Z".parse().unwrap();
        assert_ne!(new_id(at), new_id(at));
    }

    #[test]
    fn returns_no_time_for_another_version() {
        assert_eq!(id_time(Uuid::from_u128(0x1234)), None);
        assert_eq!(id_time(PLATFORM_TENANT), Some(Timestamp::UNIX_EPOCH));
    }
}
