//! What goes over the channel: arrivals and probes, as octets of fixed places, and ids only.
//!
//! Every message: version, kind, the 16 octets of its sender. A probe adds its number (8). Arrivals
//! add 1 to 512 records of 75 octets: seq (8), id (16), hours of the class (2), whether there is a
//! tenant (1), tenant (16), owner (16), inbox (16). Numbers are big-endian.

use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

/// Arrivals in one message at most.
pub(super) const ARRIVALS_MAX: usize = 512;

const VERSION: u8 = 1;
const KIND_ARRIVALS: u8 = 1;
const KIND_PROBE: u8 = 2;
const HEAD: usize = 18;
const RECORD: usize = 75;

/// A message as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The process that sent it.
    pub sender: Uuid,
    /// What it says.
    pub content: Content,
}

/// What a message says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Messages were committed.
    Arrivals(Vec<Arrival>),
    /// The sender wants to see whether this comes back to it.
    Probe(u64),
}

/// A message of at most [`ARRIVALS_MAX`] arrivals.
pub(super) fn of_arrivals(sender: Uuid, arrivals: &[Arrival]) -> Vec<u8> {
    debug_assert!((1..=ARRIVALS_MAX).contains(&arrivals.len()));
    let mut octets = head(sender, KIND_ARRIVALS, arrivals.len() * RECORD);
    for arrival in arrivals {
        octets.extend(arrival.seq.to_be_bytes());
        octets.extend(arrival.id.as_bytes());
        octets.extend(arrival.class.hours().to_be_bytes());
        octets.push(u8::from(arrival.tenant.is_some()));
        octets.extend(arrival.tenant.unwrap_or_default().as_bytes());
        octets.extend(arrival.owner.as_bytes());
        octets.extend(arrival.inbox.as_bytes());
    }
    octets
}

/// A probe.
pub(super) fn of_probe(sender: Uuid, number: u64) -> Vec<u8> {
    let mut octets = head(sender, KIND_PROBE, 8);
    octets.extend(number.to_be_bytes());
    octets
}

fn head(sender: Uuid, kind: u8, more: usize) -> Vec<u8> {
    let mut octets = Vec::with_capacity(HEAD + more);
    octets.extend([VERSION, kind]);
    octets.extend(sender.as_bytes());
    octets
}

/// The message of these octets; `None` for what no process of this version sends.
pub(super) fn read(octets: &[u8]) -> Option<Message> {
    let (&[version, kind], rest) = octets.split_first_chunk()?;
    let (sender, rest) = rest.split_first_chunk()?;
    if version != VERSION {
        return None;
    }
    let content = match kind {
        KIND_PROBE => Content::Probe(u64::from_be_bytes(rest.try_into().ok()?)),
        KIND_ARRIVALS => Content::Arrivals(read_arrivals(rest)?),
        _ => return None,
    };
    Some(Message { sender: Uuid::from_bytes(*sender), content })
}

fn read_arrivals(octets: &[u8]) -> Option<Vec<Arrival>> {
    let (records, rest) = octets.as_chunks::<RECORD>();
    if !rest.is_empty() || !(1..=ARRIVALS_MAX).contains(&records.len()) {
        return None;
    }
    records.iter().map(|record| read_arrival(record)).collect()
}

fn read_arrival(octets: &[u8]) -> Option<Arrival> {
    let (seq, octets) = octets.split_first_chunk()?;
    let (id, octets) = octets.split_first_chunk()?;
    let (hours, octets) = octets.split_first_chunk()?;
    let (&[has_tenant], octets) = octets.split_first_chunk()?;
    let (tenant, octets) = octets.split_first_chunk()?;
    let (owner, inbox) = octets.split_first_chunk()?;
    let tenant = Uuid::from_bytes(*tenant);
    let arrival = Arrival {
        seq: i64::from_be_bytes(*seq),
        id: Uuid::from_bytes(*id),
        class: RetentionClass::try_from(i16::from_be_bytes(*hours)).ok()?,
        tenant: match has_tenant {
            0 if tenant.is_nil() => None,
            1 => Some(tenant),
            _ => return None,
        },
        owner: Uuid::from_bytes(*owner),
        inbox: Uuid::from_bytes(inbox.try_into().ok()?),
    };
    (arrival.seq >= 0).then_some(arrival)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arrival() -> impl Strategy<Value = Arrival> {
        (0..=i64::MAX, any::<[u128; 3]>(), 0..6_usize, any::<Option<u128>>()).prop_map(
            |(seq, [id, owner, inbox], class, tenant)| Arrival {
                seq,
                id: Uuid::from_u128(id),
                class: RetentionClass::ALL[class],
                tenant: tenant.map(Uuid::from_u128),
                owner: Uuid::from_u128(owner),
                inbox: Uuid::from_u128(inbox),
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            arrivals in proptest::collection::vec(arrival(), 1..=ARRIVALS_MAX),
            sender: u128,
            number: u64,
        ) {
            let sender = Uuid::from_u128(sender);
            let message = Message { sender, content: Content::Arrivals(arrivals.clone()) };
            prop_assert_eq!(read(&of_arrivals(sender, &arrivals)), Some(message));
            let message = Message { sender, content: Content::Probe(number) };
            prop_assert_eq!(read(&of_probe(sender, number)), Some(message));
        }

        #[test]
        fn garbage_is_refused_or_is_what_somebody_could_have_written(
            mut octets in proptest::collection::vec(any::<u8>(), 0..400),
            kind in 0..4_u8,
        ) {
            if let [version, told, ..] = &mut octets[..] {
                (*version, *told) = (VERSION, kind);
            }
            if let Some(Message { sender, content }) = read(&octets) {
                let written = match content {
                    Content::Arrivals(arrivals) => of_arrivals(sender, &arrivals),
                    Content::Probe(number) => of_probe(sender, number),
                };
                prop_assert_eq!(written, octets);
            }
        }

        #[test]
        fn a_damaged_message_never_panics(
            arrivals in proptest::collection::vec(arrival(), 1..4),
            at: prop::sample::Index,
            with: u8,
            cut: prop::sample::Index,
        ) {
            let mut octets = of_arrivals(Uuid::nil(), &arrivals);
            let at = at.index(octets.len());
            octets[at] = with;
            let _ = read(&octets);
            octets.truncate(cut.index(octets.len()));
            let _ = read(&octets);
        }
    }

    #[test]
    fn no_arrivals_and_too_many_are_refused() {
        let one = of_arrivals(
            Uuid::nil(),
            &[Arrival {
                seq: 1,
                id: Uuid::nil(),
                class: RetentionClass::FREE,
                tenant: None,
                owner: Uuid::nil(),
                inbox: Uuid::nil(),
            }],
        );
        assert!(read(&one).is_some());
        assert!(read(&one[..HEAD]).is_none());
        let record = &one[HEAD..];
        let many = |count: usize| [&one[..HEAD], &record.repeat(count)].concat();
        assert!(read(&many(ARRIVALS_MAX)).is_some());
        assert!(read(&many(ARRIVALS_MAX + 1)).is_none());
        let next_version = [&[VERSION + 1], &one[1..]].concat();
        assert!(read(&next_version).is_none());
    }
}
