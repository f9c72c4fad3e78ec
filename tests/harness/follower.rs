//! Clients that miss nothing: each goes on where it stopped, whatever dies, until it is refused.

mod long_poll;
mod sse;
mod web_socket;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uuid::Uuid;

use self::long_poll::LongPoll;
use self::sse::Sse;
use self::web_socket::Socket;
use crate::http::{self, Answer, Request, percent};
use crate::wait::{DEADLINE, eventually};

/// Time before a connection that broke or was put off is made again.
const PAUSE: Duration = Duration::from_millis(50);

/// The ways to be told of mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Long-polls of `/v1/inbox/<address>`.
    Inbox(String),
    /// Long-polls of `/v1/domain/<domain>`.
    Domain(String),
    /// Long-polls of `/v1/me`.
    Me,
    /// `/v1/sse/addr` of an address, as EventSource.
    SseAddress(String),
    /// `/v1/sse/user`, as EventSource.
    SseUser,
    /// `/api/ws`, and `/api/messages` after each connection.
    WebSocket,
}

/// A message, as its follower met it first.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Its id.
    pub id: Uuid,
    /// Its subject.
    pub subject: String,
    /// When.
    pub at: Instant,
}

/// A client that follows.
#[derive(Debug)]
pub struct Follower {
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Follower {
    /// Follows by `way` from now on: what is committed after [`Self::ready`] is met, and over the
    /// WebSocket also what is there. `credential` is a live token, or for the WebSocket a mailbox
    /// JWT. A long-poll has no place in the stream before its first answer, so it takes that of a
    /// stream of events.
    pub fn start(server: SocketAddr, credential: &str, way: Way) -> Self {
        Self::start_at(server, credential, way, None)
    }

    /// As [`Self::start`], from a cursor; the WebSocket has none.
    pub fn start_at(server: SocketAddr, credential: &str, way: Way, since: Option<&str>) -> Self {
        let caller = Caller { client: http::client(), credential: credential.to_owned() };
        let since = since.unwrap_or_default().to_owned();
        let server = watch::Sender::new(server);
        let state = Arc::new(State { way: way.clone(), server, seen: Mutex::default() });
        let shared = Arc::clone(&state);
        let task = match way {
            Way::Inbox(address) => {
                let listener = LongPoll::new(caller, format!("/v1/inbox/{}", percent(&address)), since);
                tokio::spawn(follow(listener, shared))
            }
            Way::Domain(domain) => {
                let listener = LongPoll::new(caller, format!("/v1/domain/{}", percent(&domain)), since);
                tokio::spawn(follow(listener, shared))
            }
            Way::Me => tokio::spawn(follow(LongPoll::new(caller, "/v1/me".to_owned(), since), shared)),
            Way::SseAddress(address) => {
                let path = format!("/v1/sse/addr?address={}&", percent(&address));
                tokio::spawn(follow(Sse::new(caller, path, since), shared))
            }
            Way::SseUser => tokio::spawn(follow(Sse::new(caller, "/v1/sse/user?".to_owned(), since), shared)),
            Way::WebSocket => tokio::spawn(follow(Socket::new(caller), shared)),
        };
        Self { state, task }
    }

    /// Returns once nothing that is committed later can be missed.
    ///
    /// # Panics
    /// It never can, or is refused.
    pub async fn ready(&self) {
        eventually("a follower has its place", || async {
            self.is_well();
            self.state.seen().is_ready.then_some(())
        })
        .await;
    }

    /// Ids in the order in which they were met first.
    pub fn received(&self) -> Vec<Uuid> {
        self.state.seen().receipts.iter().map(|receipt| receipt.id).collect()
    }

    /// What was met, in order.
    pub fn receipts(&self) -> Vec<Receipt> {
        self.state.seen().receipts.clone()
    }

    /// How often a message was given that had been given before. What a list shows is not given,
    /// so one that the WebSocket also pushed does not count.
    pub fn duplicates(&self) -> usize {
        self.state.seen().duplicates
    }

    /// How many connections were opened so far, or requests that a long-poll sent.
    pub fn attempts(&self) -> usize {
        self.state.seen().attempts
    }

    /// Waits until it has met so many messages.
    ///
    /// # Panics
    /// They do not come, or it is refused.
    pub async fn wait_for(&self, count: usize) {
        self.wait_until(&format!("meets {count} messages"), |seen| seen.receipts.len() >= count).await;
    }

    /// Waits until it has met this message.
    ///
    /// # Panics
    /// It does not come, or the follower is refused.
    pub async fn wait_for_message(&self, id: Uuid) {
        self.wait_until(&format!("meets message {id}"), |seen| seen.met.contains(&id)).await;
    }

    async fn wait_until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let give_up = Instant::now() + DEADLINE;
        while !is_so(&self.state.seen()) {
            self.is_well();
            assert!(Instant::now() < give_up, "{:?} never {what}: {}", self.state.way, self.standing());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Drops its connection and goes on at another server.
    pub fn switch_to(&self, server: SocketAddr) {
        self.state.server.send_replace(server);
    }

    /// Waits until it is refused, and gives the error's code.
    ///
    /// # Panics
    /// It is not.
    pub async fn refused(&self) -> String {
        let refused = eventually("a follower is refused", || async {
            let refused = self.state.seen().refused.clone();
            if refused.is_none() {
                self.is_well();
            }
            refused
        });
        refused.await
    }

    /// Ends it; what it met can still be asked for.
    ///
    /// # Panics
    /// It failed before: an answer was not as documented.
    pub async fn stop(&mut self) {
        self.task.abort();
        if let Err(error) = (&mut self.task).await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// What a failed test should say of it.
    fn standing(&self) -> String {
        let seen = self.state.seen();
        let Seen { attempts, put_off, put_off_last, .. } = &*seen;
        let met = seen.receipts.len();
        format!("met {met} messages, {attempts} attempts, put off {put_off} times, last by {put_off_last:?}")
    }

    /// Whether it still follows.
    fn is_well(&self) {
        let refused = self.state.seen().refused.clone();
        assert!(refused.is_none(), "the follower was refused: {refused:?}");
        assert!(!self.task.is_finished(), "the follower failed: what it says is above");
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a follower and its task share.
#[derive(Debug)]
struct State {
    way: Way,
    server: watch::Sender<SocketAddr>,
    seen: Mutex<Seen>,
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Seen {
    receipts: Vec<Receipt>,
    met: HashSet<Uuid>,
    given: HashSet<Uuid>,
    duplicates: usize,
    attempts: usize,
    is_ready: bool,
    put_off: usize,
    put_off_last: Option<String>,
    refused: Option<String>,
}

impl Seen {
    fn put_off(&mut self, code: String) {
        self.put_off += 1;
        self.put_off_last = Some(code);
    }

    /// A message that the server gave as a new one.
    fn give(&mut self, message: &Value) {
        let id = self.meet(message);
        if !self.given.insert(id) {
            self.duplicates += 1;
        }
    }

    /// A message that a list showed, or that was given.
    fn meet(&mut self, message: &Value) -> Uuid {
        let text = |key: &str| message[key].as_str().unwrap_or_else(|| panic!("{message} has no {key}"));
        let id = text("id").parse().expect("an id is a UUID");
        if self.met.insert(id) {
            let subject = text("subject").to_owned();
            self.receipts.push(Receipt { id, subject, at: Instant::now() });
        }
        id
    }
}

/// Who asks.
#[derive(Debug)]
struct Caller {
    client: reqwest::Client,
    credential: String,
}

impl Caller {
    fn get(&self, server: SocketAddr, path: &str) -> Request {
        Request::new(&self.client, Method::GET, &format!("http://{server}{path}"))
    }
}

/// Why a listener has stopped.
#[derive(Debug)]
enum Over {
    /// The connection broke, or the server ended it.
    Broken,
    /// The server cannot answer now, for this reason.
    PutOff(String),
    /// With this code, which the same credential will get again.
    Refused(String),
}

impl Over {
    /// What an answer means that is no success: 429 and 503 pass, as a place that a dead server
    /// still holds.
    fn of(answer: &Answer) -> Self {
        match answer.status {
            status @ (429 | 503) => Self::PutOff(answer.error(status)),
            status => Self::Refused(answer.error(status)),
        }
    }
}

/// A client of one way. It may be dropped at any point and asked again, and goes on from the
/// last message that it noted.
trait Listen {
    /// Notes what a server gives over one connection.
    fn listen(&mut self, server: SocketAddr, state: &State) -> impl Future<Output = Over> + Send;
}

async fn follow(mut listener: impl Listen, state: Arc<State>) {
    let mut server = state.server.subscribe();
    loop {
        let at = *server.borrow_and_update();
        let over = tokio::select! {
            over = listener.listen(at, &state) => over,
            _ = server.changed() => continue,
        };
        match over {
            Over::Broken => sleep(PAUSE).await,
            Over::PutOff(code) => {
                state.seen().put_off(code);
                sleep(PAUSE).await;
            }
            Over::Refused(code) => {
                state.seen().refused = Some(code);
                return;
            }
        }
    }
}
