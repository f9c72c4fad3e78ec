//! Clients that receive every mail of a feed: each resumes where it stopped when its server dies, until it is
//! rejected.

mod long_poll;
mod mail_wait;
mod sse;
mod web_socket;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uuid::Uuid;

use self::long_poll::LongPollClient;
use self::mail_wait::MailWaitClient;
use self::sse::SseClient;
use self::web_socket::WebSocketClient;
use crate::http::{self, Request, Response, percent};
use crate::wait::{DEADLINE, eventually};

/// Time before a client reconnects.
const RECONNECT_DELAY: Duration = Duration::from_millis(50);

/// What a follower reads, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// Long-polls of `/v1/inbox/<address>`.
    Inbox(String),
    /// Long-polls of `/v1/domain/<domain>`.
    Domain(String),
    /// Long-polls of `/v1/me`.
    Me,
    /// `/v1/wait` on an address.
    Wait(String),
    /// `/v1/wait` on everything owned, for mail whose recipient's address contains this.
    WaitOwned(String),
    /// `/v1/sse/addr` of an address, as EventSource.
    SseAddress(String),
    /// `/v1/sse/user`, as EventSource.
    SseUser,
    /// `/api/ws`, and `/api/messages` after each connection.
    WebSocket,
}

/// The first receipt of a message.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Message id.
    pub id: Uuid,
    /// Subject.
    pub subject: String,
    /// When it was received.
    pub at: Instant,
}

/// A client that follows a feed.
#[derive(Debug)]
pub struct Follower {
    state: Arc<FollowerState>,
    task: JoinHandle<()>,
}

impl Follower {
    /// Follows a feed: receives what is committed after [`Self::ready`], and over the WebSocket also what is
    /// stored already. `credential` is a live token, or for the WebSocket a mailbox JWT. A long-poll has no
    /// cursor before its first response, so it takes the first cursor of an event stream.
    pub fn start(server: SocketAddr, credential: &str, feed: Feed) -> Self {
        Self::start_at(server, credential, feed, None)
    }

    /// As [`Self::start`], from a cursor, which the WebSocket ignores.
    pub fn start_at(server: SocketAddr, credential: &str, feed: Feed, since: Option<&str>) -> Self {
        let api = ApiClient { http: http::client(), credential: credential.to_owned() };
        let since = since.unwrap_or_default().to_owned();
        let server = watch::Sender::new(server);
        let state = Arc::new(FollowerState { feed: feed.clone(), server, progress: Mutex::default() });
        let for_task = Arc::clone(&state);
        let long_poll =
            |api, path| tokio::spawn(follow(LongPollClient::new(api, path, since.clone()), for_task.clone()));
        let mail_wait =
            |api, body| tokio::spawn(follow(MailWaitClient::new(api, body, since.clone()), for_task.clone()));
        let sse =
            |api, path| tokio::spawn(follow(SseClient::new(api, path, since.clone()), for_task.clone()));
        let task = match feed {
            Feed::Inbox(address) => long_poll(api, format!("/v1/inbox/{}", percent(&address))),
            Feed::Domain(domain) => long_poll(api, format!("/v1/domain/{}", percent(&domain))),
            Feed::Me => long_poll(api, "/v1/me".to_owned()),
            Feed::Wait(address) => mail_wait(api, json!({ "address": address })),
            Feed::WaitOwned(to) => mail_wait(api, json!({ "all": true, "match": { "to": to } })),
            Feed::SseAddress(address) => sse(api, format!("/v1/sse/addr?address={}&", percent(&address))),
            Feed::SseUser => sse(api, "/v1/sse/user?".to_owned()),
            Feed::WebSocket => tokio::spawn(follow(WebSocketClient::new(api), for_task.clone())),
        };
        Self { state, task }
    }

    /// Waits until the follower receives everything that is committed from now on.
    ///
    /// # Panics
    /// It is rejected, or not ready in time.
    pub async fn ready(&self) {
        eventually("a follower is ready", || async {
            self.assert_running();
            self.state.progress().is_ready.then_some(())
        })
        .await;
    }

    /// Message ids in the order of their first receipt.
    pub fn received(&self) -> Vec<Uuid> {
        self.state.progress().receipts.iter().map(|receipt| receipt.id).collect()
    }

    /// First receipts, in order.
    pub fn receipts(&self) -> Vec<Receipt> {
        self.state.progress().receipts.clone()
    }

    /// Number of messages that the server sent again as new ones. Lists do not count.
    pub fn duplicates(&self) -> usize {
        self.state.progress().duplicates
    }

    /// Number of connections opened so far, or of requests that wait.
    pub fn attempts(&self) -> usize {
        self.state.progress().attempts
    }

    /// Error codes of the requests that the server could not answer then.
    pub fn deferrals(&self) -> Vec<String> {
        self.state.progress().deferrals.clone()
    }

    /// Waits until so many messages are received.
    ///
    /// # Panics
    /// The follower receives nothing for [`DEADLINE`], or is rejected.
    pub async fn wait_for(&self, count: usize) {
        self.wait_until(&format!("received {count} messages"), |seen| seen.receipts.len() >= count).await;
    }

    /// Waits until this message is received.
    ///
    /// # Panics
    /// The follower receives nothing for [`DEADLINE`], or is rejected.
    pub async fn wait_for_message(&self, id: Uuid) {
        self.wait_until(&format!("received message {id}"), |seen| seen.ids.contains(&id)).await;
    }

    async fn wait_until(&self, what: &str, is_reached: impl Fn(&Progress) -> bool) {
        let (mut give_up, mut received) = (Instant::now() + DEADLINE, 0);
        while !is_reached(&self.state.progress()) {
            self.assert_running();
            let now_received = self.state.progress().receipts.len();
            if now_received > received {
                (give_up, received) = (Instant::now() + DEADLINE, now_received);
            }
            assert!(Instant::now() < give_up, "{:?} never {what}: {}", self.state.feed, self.summary());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Drops the connection and continues at another server.
    pub fn switch_to(&self, server: SocketAddr) {
        self.state.server.send_replace(server);
    }

    /// Waits until the follower is rejected, and returns the error code.
    ///
    /// # Panics
    /// It is not rejected in time.
    pub async fn refused(&self) -> String {
        let refused = eventually("a follower is rejected", || async {
            let refused = self.state.progress().refused.clone();
            if refused.is_none() {
                self.assert_running();
            }
            refused
        });
        refused.await
    }

    /// Stops the follower. What it received stays available.
    ///
    /// # Panics
    /// It failed before: a response was not as documented.
    pub async fn stop(&mut self) {
        self.task.abort();
        if let Err(error) = (&mut self.task).await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// For the message of a failed test.
    fn summary(&self) -> String {
        let progress = self.state.progress();
        let Progress { attempts, deferrals, .. } = &*progress;
        let (received, count, last) = (progress.receipts.len(), deferrals.len(), deferrals.last());
        format!("{received} messages, {attempts} attempts, {count} deferrals, the last with {last:?}")
    }

    fn assert_running(&self) {
        let refused = self.state.progress().refused.clone();
        assert!(refused.is_none(), "the follower was rejected: {refused:?}");
        assert!(!self.task.is_finished(), "the follower failed, see above");
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Shared by a follower and its task.
#[derive(Debug)]
struct FollowerState {
    feed: Feed,
    server: watch::Sender<SocketAddr>,
    progress: Mutex<Progress>,
}

impl FollowerState {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Progress {
    receipts: Vec<Receipt>,
    /// All messages received.
    ids: HashSet<Uuid>,
    /// Those that the server sent as new ones, not in a list.
    pushed: HashSet<Uuid>,
    duplicates: usize,
    attempts: usize,
    is_ready: bool,
    deferrals: Vec<String>,
    refused: Option<String>,
}

impl Progress {
    /// Records a message that the server sent as a new one.
    fn record_new(&mut self, message: &Value) {
        let id = self.record_listed(message);
        if !self.pushed.insert(id) {
            self.duplicates += 1;
        }
    }

    /// Records a message of a list.
    fn record_listed(&mut self, message: &Value) -> Uuid {
        let text = |key: &str| message[key].as_str().unwrap_or_else(|| panic!("{message} has no {key}"));
        let id = text("id").parse().expect("an id is a UUID");
        if self.ids.insert(id) {
            let subject = text("subject").to_owned();
            self.receipts.push(Receipt { id, subject, at: Instant::now() });
        }
        id
    }
}

/// An HTTP client and its credential.
#[derive(Debug)]
struct ApiClient {
    http: reqwest::Client,
    credential: String,
}

impl ApiClient {
    fn get(&self, server: SocketAddr, path: &str) -> Request {
        Request::new(&self.http, Method::GET, &format!("http://{server}{path}"))
    }
}

/// Why a connection ended.
#[derive(Debug)]
enum Disconnect {
    /// It broke, or the server closed it.
    Broken,
    /// The server cannot answer now, with this code.
    Deferred(String),
    /// The server rejects the credential with this code.
    Refused(String),
}

impl Disconnect {
    /// Of an error response: 429 and 503 are temporary, such as the permit that a dead server still holds.
    fn from_error(response: &Response) -> Self {
        match response.status {
            status @ (429 | 503) => Self::Deferred(response.error(status)),
            status => Self::Refused(response.error(status)),
        }
    }
}

/// A client of one kind of feed. Cancel safe: a further call resumes after the last recorded message.
trait FeedClient {
    /// Records what the server sends over one connection, and returns why it ended.
    fn run(&mut self, server: SocketAddr, state: &FollowerState) -> impl Future<Output = Disconnect> + Send;
}

async fn follow(mut client: impl FeedClient, state: Arc<FollowerState>) {
    let mut server = state.server.subscribe();
    loop {
        let address = *server.borrow_and_update();
        let disconnect = tokio::select! {
            disconnect = client.run(address, &state) => disconnect,
            _ = server.changed() => continue,
        };
        match disconnect {
            Disconnect::Broken => sleep(RECONNECT_DELAY).await,
            Disconnect::Deferred(code) => {
                state.progress().deferrals.push(code);
                sleep(RECONNECT_DELAY).await;
            }
            Disconnect::Refused(code) => {
                state.progress().refused = Some(code);
                return;
            }
        }
    }
}
