//! Follows an event stream as EventSource does, except that it reconnects without a delay, and also after a 429 or
//! 503, where a page would create a new EventSource.

use std::net::SocketAddr;

use super::{ApiClient, Disconnect, FeedClient, FollowerState};
use crate::sse::EventStream;

/// A client of server-sent events.
#[derive(Debug)]
pub(super) struct SseClient {
    api: ApiClient,
    /// Ends with `?` or `&`, for further parameters.
    path: String,
    since: String,
    last_event_id: String,
}

impl SseClient {
    pub(super) fn new(api: ApiClient, path: String, since: String) -> Self {
        Self { api, path, since, last_event_id: String::new() }
    }
}

impl FeedClient for SseClient {
    async fn run(&mut self, server: SocketAddr, state: &FollowerState) -> Disconnect {
        // The URL stays the same, as that of an EventSource: `last-event-id` takes precedence.
        let mut path = format!("{}token={}", self.path, self.api.credential);
        if !self.since.is_empty() {
            path.push_str(&format!("&since={}", self.since));
        }
        let mut request = self.api.get(server, &path);
        if !self.last_event_id.is_empty() {
            request = request.header("last-event-id", &self.last_event_id);
        }
        state.progress().attempts += 1;
        let mut stream = match EventStream::try_open(request).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(response)) => return Disconnect::from_error(&response),
            Err(_) => return Disconnect::Broken,
        };
        while let Some(block) = stream.try_block().await {
            let mut progress = state.progress();
            stream.last_event_id().clone_into(&mut self.last_event_id);
            progress.is_ready = true;
            if let Some(data) = block.data {
                assert_eq!(block.event.as_deref(), Some("new_email"), "{data}");
                progress.record_new(&serde_json::from_str(&data).expect("the data of an event is JSON"));
            }
        }
        Disconnect::Broken
    }
}
