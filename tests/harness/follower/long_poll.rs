//! Follows `next_since`.

use std::net::SocketAddr;

use super::{ApiClient, Disconnect, FeedClient, FollowerState};
use crate::sse::EventStream;

/// Values of `limit`, in turn.
const LIMITS: [usize; 3] = [50, 50, 7];

/// A client of long-polls.
#[derive(Debug)]
pub(super) struct LongPollClient {
    api: ApiClient,
    path: String,
    /// Empty before the first cursor.
    since: String,
}

impl LongPollClient {
    pub(super) fn new(api: ApiClient, path: String, since: String) -> Self {
        Self { api, path, since }
    }

    /// Takes the first cursor of an event stream: cursors are valid in any scope of a tenant.
    async fn take_first_cursor(&mut self, server: SocketAddr) -> Result<(), Disconnect> {
        let request = self.api.get(server, "/v1/sse/user").live(&self.api.credential);
        let mut stream = match EventStream::try_open(request).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(response)) => return Err(Disconnect::from_error(&response)),
            Err(_) => return Err(Disconnect::Broken),
        };
        while stream.last_event_id().is_empty() {
            stream.try_block().await.ok_or(Disconnect::Broken)?;
        }
        self.since = stream.last_event_id().to_owned();
        Ok(())
    }

    /// One request.
    async fn poll(&mut self, server: SocketAddr, state: &FollowerState) -> Result<(), Disconnect> {
        let limit = LIMITS[state.progress().attempts % LIMITS.len()];
        let path = format!("{}?limit={limit}&since={}", self.path, self.since);
        state.progress().attempts += 1;
        let request = self.api.get(server, &path).live(&self.api.credential);
        let response = request.try_send().await.map_err(|_| Disconnect::Broken)?;
        match response.status {
            200 => {
                let body = response.json();
                let mut progress = state.progress();
                for email in body["emails"].as_array().expect("emails is a list").iter().rev() {
                    progress.record_new(email);
                }
                self.since = body["next_since"].as_str().expect("next_since is a text").to_owned();
                Ok(())
            }
            204 => {
                response.header("x-next-since").clone_into(&mut self.since);
                Ok(())
            }
            _ => Err(Disconnect::from_error(&response)),
        }
    }
}

impl FeedClient for LongPollClient {
    async fn run(&mut self, server: SocketAddr, state: &FollowerState) -> Disconnect {
        if self.since.is_empty()
            && let Err(disconnect) = self.take_first_cursor(server).await
        {
            return disconnect;
        }
        state.progress().is_ready = true;
        loop {
            if let Err(disconnect) = self.poll(server, state).await {
                return disconnect;
            }
        }
    }
}
