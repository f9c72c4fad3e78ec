//! Long-polls, one after the other.

use std::convert::Infallible;

use super::{Disconnect, HttpConnection, Subscriber, SubscriptionState, content_length};
use crate::realtime::pool::PoolState;

pub(super) async fn follow(
    client: &Subscriber,
    shared: &PoolState,
    target: &str,
    token: &str,
    state: &mut SubscriptionState,
) -> Result<Infallible, Disconnect> {
    let mut connection = HttpConnection::connect(shared.server, client.number).await?;
    loop {
        let query = state.since.as_ref().map(|since| format!("?since={since}")).unwrap_or_default();
        let host = shared.server;
        let request = format!("GET {target}{query} HTTP/1.1\r\nHost: {host}\r\nx-api-token: {token}\r\n\r\n");
        connection.send(request.as_bytes()).await?;
        state.open(shared);
        let head = connection.head().await?;
        let since = match head.status {
            200 => {
                let body = connection.octets(content_length(&head)?).await?;
                let text = String::from_utf8(body).map_err(|_| Disconnect::Malformed)?;
                shared.delivery_log.seen(client.number, &text, connection.at);
                let rest = text.split_once("\"next_since\":\"").map(|(_, rest)| rest);
                rest.and_then(|rest| rest.split('"').next()).map(str::to_owned)
            }
            204 => head.field("x-next-since").map(str::to_owned),
            status => return Err(Disconnect::Status(status)),
        };
        state.since = Some(since.ok_or(Disconnect::Malformed)?);
    }
}
