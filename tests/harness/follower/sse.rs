//! Follows a stream of events as EventSource does, but for two things: it comes back at once, and
//! also after a 429 or 503, where a page would make a new EventSource.

use std::net::SocketAddr;

use super::{Caller, Listen, Over, State};
use crate::sse::EventStream;

/// A client of server-sent events.
#[derive(Debug)]
pub(super) struct Sse {
    caller: Caller,
    /// Ends with what precedes a further parameter.
    path: String,
    since: String,
    last_event_id: String,
}

impl Sse {
    pub(super) fn new(caller: Caller, path: String, since: String) -> Self {
        Self { caller, path, since, last_event_id: String::new() }
    }
}

impl Listen for Sse {
    async fn listen(&mut self, server: SocketAddr, state: &State) -> Over {
        // The URL stays the same: what is sent beside it wins.
        let mut path = format!("{}token={}", self.path, self.caller.credential);
        if !self.since.is_empty() {
            path.push_str(&format!("&since={}", self.since));
        }
        let mut request = self.caller.get(server, &path);
        if !self.last_event_id.is_empty() {
            request = request.header("last-event-id", &self.last_event_id);
        }
        state.seen().attempts += 1;
        let mut stream = match EventStream::try_open(request).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(answer)) => return Over::of(&answer),
            Err(_) => return Over::Broken,
        };
        while let Some(block) = stream.try_block().await {
            let mut seen = state.seen();
            stream.last_event_id().clone_into(&mut self.last_event_id);
            seen.is_ready = true;
            if let Some(data) = block.data {
                assert_eq!(block.event.as_deref(), Some("new_email"), "{data}");
                seen.give(&serde_json::from_str(&data).expect("the data of an event is JSON"));
            }
        }
        Over::Broken
    }
}
