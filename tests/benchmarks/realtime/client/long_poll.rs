//! Long-polls, one after the other.

use std::convert::Infallible;

use super::{Client, Ended, Place, Wire, content_length};
use crate::realtime::crowd::Shared;

pub(super) async fn follow(
    client: &Client,
    shared: &Shared,
    target: &str,
    token: &str,
    place: &mut Place,
) -> Result<Infallible, Ended> {
    let mut wire = Wire::connect(shared.server, client.number).await?;
    loop {
        let query = place.since.as_ref().map(|since| format!("?since={since}")).unwrap_or_default();
        let host = shared.server;
        let request = format!("GET {target}{query} HTTP/1.1\r\nHost: {host}\r\nx-api-token: {token}\r\n\r\n");
        wire.send(request.as_bytes()).await?;
        place.open(shared);
        let head = wire.head().await?;
        let since = match head.status {
            200 => {
                let body = wire.octets(content_length(&head)?).await?;
                let text = String::from_utf8(body).map_err(|_| Ended::Malformed)?;
                shared.ledger.seen(client.number, &text, wire.at);
                let rest = text.split_once("\"next_since\":\"").map(|(_, rest)| rest);
                rest.and_then(|rest| rest.split('"').next()).map(str::to_owned)
            }
            204 => head.field("x-next-since").map(str::to_owned),
            status => return Err(Ended::Status(status)),
        };
        place.since = Some(since.ok_or(Ended::Malformed)?);
    }
}
