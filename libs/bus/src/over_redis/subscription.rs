//! Hears what the processes tell each other, over a connection of its own.

use futures_util::StreamExt as _;
use redis::Client;
use redis::aio::PubSubStream;
use tokio::time::timeout;

use super::away::Away;
use super::commands::CONNECT_TIMEOUT;
use super::message::{self, Message};

/// A connection that is subscribed.
pub(super) struct Subscription {
    messages: PubSubStream,
}

impl Subscription {
    pub(super) async fn connect(client: &Client, channel: &str) -> Result<Self, Away> {
        let subscribe = async {
            let mut connection = client.get_async_pubsub().await?;
            connection.subscribe(channel).await?;
            Ok(connection.into_on_message())
        };
        let connected = timeout(CONNECT_TIMEOUT, subscribe).await;
        let connected = connected.map_err(|_| Away::because("subscribing took too long"))?;
        let messages = connected.map_err(|error: redis::RedisError| Away::from(&error))?;
        Ok(Self { messages })
    }

    /// Gives each message to `hear`, until the connection ends. Nothing here waits for a reader,
    /// so nothing piles up.
    pub(super) async fn receive(&mut self, mut hear: impl FnMut(Message)) -> Away {
        while let Some(message) = self.messages.next().await {
            match message::read(message.get_payload_bytes()) {
                Some(message) => hear(message),
                None => metrics::counter!("tempmail_bus_unreadable_total").increment(1),
            }
        }
        Away::because("the subscription's connection ended")
    }
}
