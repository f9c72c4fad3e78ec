//! Server-sent events, from the last event's id on.

use std::convert::Infallible;

use tempmail_tests::sse::Parser;

use super::{Client, Ended, Place, Wire};
use crate::realtime::crowd::Shared;

pub(super) async fn follow(
    client: &Client,
    shared: &Shared,
    target: &str,
    place: &mut Place,
) -> Result<Infallible, Ended> {
    let mut wire = Wire::connect(shared.server, client.number).await?;
    let last = place.since.as_ref().map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{last}\r\n", shared.server);
    wire.send(request.as_bytes()).await?;
    let head = wire.head().await?;
    if head.status != 200 {
        return Err(Ended::Status(head.status));
    }
    place.open(shared);
    let mut parser = Parser::default();
    while let Some(octets) = wire.chunk().await? {
        parser.push(&octets);
        while let Some(block) = parser.block() {
            if let Some(data) = block.data {
                shared.ledger.seen(client.number, &data, wire.at);
            }
            place.since = block.id.or(place.since.take());
        }
    }
    Err(Ended::Closed)
}
