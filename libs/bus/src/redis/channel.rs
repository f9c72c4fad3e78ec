//! The channel of arrivals: what is published on it, by whom, and what is received.
//!
//! A message has fields of fixed length, with ids only: version, kind, the 16 bytes of its sender. A probe
//! adds its number (8). Arrivals add 1 to 512 records of 75 bytes: seq (8), id (16), hours of the retention
//! class (2), whether there is a tenant (1), tenant (16), owner (16), inbox (16). Numbers are big-endian.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use futures_util::StreamExt as _;
use redis::aio::PubSubStream;
use redis::{Client, Cmd, cmd};
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

use super::commands::{CONNECT_TIMEOUT, Commands, Disconnected};

/// Batches that may wait to be published; what exceeds them is dropped.
const OUTBOX_MAX: usize = 1024;
/// Batches that are published together.
const BATCH: usize = 64;

/// Arrivals in one message at most.
const ARRIVALS_MAX: usize = 512;
const VERSION: u8 = 1;
const KIND_ARRIVALS: u8 = 1;
const KIND_PROBE: u8 = 2;
const HEADER: usize = 18;
const RECORD: usize = 75;

/// Where arrivals wait to be published.
pub(super) type Outbox = mpsc::Sender<Arc<[Arrival]>>;

/// Publishes what is in the outbox.
#[derive(Debug)]
pub(super) struct Publisher {
    outbox: mpsc::Receiver<Arc<[Arrival]>>,
    channel: String,
    sender: Uuid,
}

impl Publisher {
    pub(super) fn new(channel: String, sender: Uuid) -> (Outbox, Self) {
        let (sending, outbox) = mpsc::channel(OUTBOX_MAX);
        (sending, Self { outbox, channel, sender })
    }

    /// Drops everything, since Redis is unavailable; never ends.
    pub(super) async fn drop_all(&mut self) -> Infallible {
        while let Some(arrivals) = self.outbox.recv().await {
            count_dropped(arrivals.len());
        }
        pending().await
    }

    /// Publishes until Redis is unavailable.
    pub(super) async fn run(&mut self, commands: &Commands) -> Disconnected {
        let mut batches = Vec::with_capacity(BATCH);
        while self.outbox.recv_many(&mut batches, BATCH).await > 0 {
            if let Err(disconnected) = self.publish_batches(commands, &mut batches).await {
                return disconnected;
            }
        }
        pending().await
    }

    /// Publishes what is in the outbox now.
    pub(super) async fn flush(&mut self, commands: &Commands) -> Result<(), Disconnected> {
        let mut batches: Vec<_> = std::iter::from_fn(|| self.outbox.try_recv().ok()).collect();
        self.publish_batches(commands, &mut batches).await
    }

    async fn publish_batches(
        &self,
        commands: &Commands,
        batches: &mut Vec<Arc<[Arrival]>>,
    ) -> Result<(), Disconnected> {
        let arrivals = batches.concat();
        batches.clear();
        let messages = arrivals.chunks(ARRIVALS_MAX).map(|chunk| encode_arrivals(self.sender, chunk));
        let publish: Vec<Cmd> = messages.map(|message| publish(&self.channel, &message)).collect();
        commands.send(&publish).await.map(drop).inspect_err(|_| count_dropped(arrivals.len()))
    }
}

/// Publishes a probe.
pub(super) async fn publish_probe(
    commands: &Commands,
    channel: &str,
    sender: Uuid,
    number: u64,
) -> Result<(), Disconnected> {
    commands.send_one(publish(channel, &encode_probe(sender, number))).await.map(drop)
}

fn publish(channel: &str, message: &[u8]) -> Cmd {
    let mut command = cmd("PUBLISH");
    command.arg(channel).arg(message);
    command
}

/// Counts arrivals that other processes do not receive.
pub(super) fn count_dropped(arrivals: usize) {
    metrics::counter!("tempmail_bus_dropped_arrivals_total").increment(arrivals as u64);
}

/// A connection that is subscribed to the channel.
pub(super) struct Subscription {
    messages: PubSubStream,
}

impl Subscription {
    pub(super) async fn connect(client: &Client, channel: &str) -> Result<Self, Disconnected> {
        let subscribe = async {
            let mut connection = client.get_async_pubsub().await?;
            connection.subscribe(channel).await?;
            Ok(connection.into_on_message())
        };
        let connected = timeout(CONNECT_TIMEOUT, subscribe).await;
        let connected = connected.map_err(|_| Disconnected::because("subscribing took too long"))?;
        let messages = connected.map_err(|error: redis::RedisError| Disconnected::from(&error))?;
        Ok(Self { messages })
    }

    /// Passes each message to `on_message`, until the connection ends. Nothing here waits for a reader, so
    /// nothing piles up.
    pub(super) async fn receive(&mut self, mut on_message: impl FnMut(ChannelMessage)) -> Disconnected {
        while let Some(message) = self.messages.next().await {
            match decode(message.get_payload_bytes()) {
                Some(message) => on_message(message),
                None => metrics::counter!("tempmail_bus_invalid_messages_total").increment(1),
            }
        }
        Disconnected::because("the subscription's connection ended")
    }
}

/// A message on the channel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChannelMessage {
    /// The process that sent it.
    pub(super) sender: Uuid,
    /// What it carries.
    pub(super) content: Content,
}

/// What a message carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Messages were committed.
    Arrivals(Vec<Arrival>),
    /// The sender checks that this comes back to it.
    Probe(u64),
}

/// Encodes at most [`ARRIVALS_MAX`] arrivals.
fn encode_arrivals(sender: Uuid, arrivals: &[Arrival]) -> Vec<u8> {
    debug_assert!((1..=ARRIVALS_MAX).contains(&arrivals.len()));
    let mut bytes = header(sender, KIND_ARRIVALS, arrivals.len() * RECORD);
    for arrival in arrivals {
        bytes.extend(arrival.seq.to_be_bytes());
        bytes.extend(arrival.id.as_bytes());
        bytes.extend(arrival.class.hours().to_be_bytes());
        bytes.push(u8::from(arrival.tenant.is_some()));
        bytes.extend(arrival.tenant.unwrap_or_default().as_bytes());
        bytes.extend(arrival.owner.as_bytes());
        bytes.extend(arrival.inbox.as_bytes());
    }
    bytes
}

fn encode_probe(sender: Uuid, number: u64) -> Vec<u8> {
    let mut bytes = header(sender, KIND_PROBE, 8);
    bytes.extend(number.to_be_bytes());
    bytes
}

fn header(sender: Uuid, kind: u8, body_length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body_length);
    bytes.extend([VERSION, kind]);
    bytes.extend(sender.as_bytes());
    bytes
}

/// Decodes a message; `None` for what no process of this version sends.
fn decode(bytes: &[u8]) -> Option<ChannelMessage> {
    let (&[version, kind], rest) = bytes.split_first_chunk()?;
    let (sender, rest) = rest.split_first_chunk()?;
    if version != VERSION {
        return None;
    }
    let content = match kind {
        KIND_PROBE => Content::Probe(u64::from_be_bytes(rest.try_into().ok()?)),
        KIND_ARRIVALS => Content::Arrivals(decode_arrivals(rest)?),
        _ => return None,
    };
    Some(ChannelMessage { sender: Uuid::from_bytes(*sender), content })
}

fn decode_arrivals(bytes: &[u8]) -> Option<Vec<Arrival>> {
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if !rest.is_empty() || !(1..=ARRIVALS_MAX).contains(&records.len()) {
        return None;
    }
    records.iter().map(|record| decode_arrival(record)).collect()
}

fn decode_arrival(bytes: &[u8]) -> Option<Arrival> {
    let (seq, bytes) = bytes.split_first_chunk()?;
    let (id, bytes) = bytes.split_first_chunk()?;
    let (hours, bytes) = bytes.split_first_chunk()?;
    let (&[has_tenant], bytes) = bytes.split_first_chunk()?;
    let (tenant, bytes) = bytes.split_first_chunk()?;
    let (owner, inbox) = bytes.split_first_chunk()?;
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
        fn decodes_what_was_encoded(
            arrivals in proptest::collection::vec(arrival(), 1..=ARRIVALS_MAX),
            sender: u128,
            number: u64,
        ) {
            let sender = Uuid::from_u128(sender);
            let message = ChannelMessage { sender, content: Content::Arrivals(arrivals.clone()) };
            prop_assert_eq!(decode(&encode_arrivals(sender, &arrivals)), Some(message));
            let message = ChannelMessage { sender, content: Content::Probe(number) };
            prop_assert_eq!(decode(&encode_probe(sender, number)), Some(message));
        }

        #[test]
        fn decodes_garbage_only_if_it_could_have_been_encoded(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            kind in 0..4_u8,
        ) {
            if let [version, message_kind, ..] = &mut bytes[..] {
                (*version, *message_kind) = (VERSION, kind);
            }
            if let Some(ChannelMessage { sender, content }) = decode(&bytes) {
                let encoded = match content {
                    Content::Arrivals(arrivals) => encode_arrivals(sender, &arrivals),
                    Content::Probe(number) => encode_probe(sender, number),
                };
                prop_assert_eq!(encoded, bytes);
            }
        }

        #[test]
        fn does_not_panic_at_a_damaged_message(
            arrivals in proptest::collection::vec(arrival(), 1..4),
            at: prop::sample::Index,
            with: u8,
            cut: prop::sample::Index,
        ) {
            let mut bytes = encode_arrivals(Uuid::nil(), &arrivals);
            let at = at.index(bytes.len());
            bytes[at] = with;
            let _ = decode(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn rejects_no_arrivals_too_many_and_another_version() {
        let one = encode_arrivals(
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
        assert!(decode(&one).is_some());
        assert!(decode(&one[..HEADER]).is_none());
        let record = &one[HEADER..];
        let many = |count: usize| [&one[..HEADER], &record.repeat(count)].concat();
        assert!(decode(&many(ARRIVALS_MAX)).is_some());
        assert!(decode(&many(ARRIVALS_MAX + 1)).is_none());
        let next_version = [&[VERSION + 1], &one[1..]].concat();
        assert!(decode(&next_version).is_none());
    }
}
