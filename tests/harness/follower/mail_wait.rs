//! Follows `POST /v1/wait`, one mail after the other.

use std::net::SocketAddr;

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApiClient, Disconnect, FeedClient, FollowerState};
use crate::http::{Request, Response};

/// Seconds that a request waits.
const TIMEOUT: u64 = 20;

/// A client of mail waits.
#[derive(Debug)]
pub(super) struct MailWaitClient {
    api: ApiClient,
    /// Scope and match.
    body: Value,
    /// Empty before the first cursor.
    since: String,
}

impl MailWaitClient {
    pub(super) fn new(api: ApiClient, body: Value, since: String) -> Self {
        Self { api, body, since }
    }

    /// Takes a cursor of now.
    async fn take_first_cursor(&mut self, server: SocketAddr) -> Result<(), Disconnect> {
        let nothing = json!({ "all": true, "after": "2200-01-01T00:00:00Z", "timeout": 0 });
        let response = self.send(server, &nothing).await?;
        match response.status {
            204 => response.header("x-next-since").clone_into(&mut self.since),
            _ => return Err(Disconnect::from_error(&response)),
        }
        Ok(())
    }

    /// One request.
    async fn wait(&mut self, server: SocketAddr, state: &FollowerState) -> Result<(), Disconnect> {
        state.progress().attempts += 1;
        let mut body = self.body.clone();
        body["since"] = json!(self.since);
        body["timeout"] = json!(TIMEOUT);
        let response = self.send(server, &body).await?;
        match response.status {
            200 => {
                let found = response.json();
                state.progress().record_new(&found["email"]);
                self.since = found["next_since"].as_str().expect("next_since is a text").to_owned();
            }
            204 => response.header("x-next-since").clone_into(&mut self.since),
            _ => return Err(Disconnect::from_error(&response)),
        }
        Ok(())
    }

    async fn send(&self, server: SocketAddr, body: &Value) -> Result<Response, Disconnect> {
        let url = format!("http://{server}/v1/wait");
        let request = Request::new(&self.api.http, Method::POST, &url).live(&self.api.credential);
        request.json(body).try_send().await.map_err(|_| Disconnect::Broken)
    }
}

impl FeedClient for MailWaitClient {
    async fn run(&mut self, server: SocketAddr, state: &FollowerState) -> Disconnect {
        if self.since.is_empty()
            && let Err(disconnect) = self.take_first_cursor(server).await
        {
            return disconnect;
        }
        state.progress().is_ready = true;
        loop {
            if let Err(disconnect) = self.wait(server, state).await {
                return disconnect;
            }
        }
    }
}
