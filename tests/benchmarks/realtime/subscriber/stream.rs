//! Server-sent events, from the last event's id on.

use std::convert::Infallible;

use tempmail_tests::sse::Parser;

use super::{Disconnect, HttpConnection, Subscriber, SubscriptionState};
use crate::realtime::pool::PoolState;

pub(super) async fn follow(
    client: &Subscriber,
    shared: &PoolState,
    target: &str,
    state: &mut SubscriptionState,
) -> Result<Infallible, Disconnect> {
    let mut connection = HttpConnection::connect(shared.server, client.number).await?;
    let last = state.since.as_ref().map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{last}\r\n", shared.server);
    connection.send(request.as_bytes()).await?;
    let head = connection.head().await?;
    if head.status != 200 {
        return Err(Disconnect::Status(head.status));
    }
    state.open(shared);
    let mut parser = Parser::default();
    while let Some(octets) = connection.chunk().await? {
        parser.push(&octets);
        while let Some(block) = parser.block() {
            if let Some(data) = block.data {
                shared.delivery_log.seen(client.number, &data, connection.at);
            }
            state.since = block.id.or(state.since.take());
        }
    }
    Err(Disconnect::Closed)
}
