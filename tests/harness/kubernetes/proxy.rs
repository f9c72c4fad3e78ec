//! A proxy between a program and the API server, which records requests and fails them as a test
//! schedules.

mod forward;
mod request;
mod script;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::forward::{ProxyState, WatchEnd};
pub use self::request::{ApiRequest, Verb};
use self::script::{Action, Trigger};
pub use self::script::{ApiFault, StopPoint, StopReached};
use super::cluster::Cluster;
use crate::port::free_port;

/// A proxy on loopback that speaks plain HTTP with the program, and with the API server as the
/// cluster's administrator or as a user. Watches pass unbuffered.
#[derive(Debug)]
pub struct ApiProxy {
    address: SocketAddr,
    directory: tempfile::TempDir,
    state: Arc<ProxyState>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl ApiProxy {
    /// A proxy with the rights of the administrator.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start(cluster: &Cluster) -> Self {
        Self::to(cluster.config().clone()).await
    }

    /// A proxy with the rights of a user in these groups.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start_as(cluster: &Cluster, user: &str, groups: &[&str]) -> Self {
        Self::to(cluster.config_as(user, groups)).await
    }

    async fn to(mut api_server: Config) -> Self {
        // The program repeats failed requests itself.
        api_server.default_retry = false;
        let address = free_port();
        let directory = tempfile::tempdir().expect("a directory can be made");
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig(address, "default"))
            .expect("a file can be written");
        let client = Client::try_from(api_server).expect("the kubeconfig is valid");
        let state = Arc::new(ProxyState::new(client));
        let proxy = Self { address, directory, state, listening: Mutex::default() };
        proxy.restore().await;
        proxy
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Path of a kubeconfig for the program.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// The same, of a program in another namespace than `default`.
    ///
    /// # Panics
    /// The file can't be written.
    pub fn kubeconfig_in(&self, namespace: &str) -> PathBuf {
        let path = self.directory.path().join(format!("kubeconfig-{namespace}"));
        std::fs::write(&path, kubeconfig(self.address, namespace)).expect("a file can be written");
        path
    }

    /// A client through it.
    ///
    /// # Panics
    /// Never: its address is a URL.
    pub fn client(&self) -> Client {
        let url = format!("http://{}", self.address).parse().expect("a URL");
        Client::try_from(Config::new(url)).expect("it needs no credentials")
    }

    /// All requests so far, in order, whether they were forwarded or not.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.state.script().requests.clone()
    }

    /// How many requests have this verb.
    pub fn count(&self, verb: Verb) -> usize {
        self.state.script().requests.iter().filter(|request| request.verb == verb).count()
    }

    /// How many requests there were so far: for [`Self::requests_since`] and [`Self::writes_since`].
    pub fn request_count(&self) -> usize {
        self.state.script().requests.len()
    }

    /// The requests after the first `count`, whether they were forwarded or not.
    pub fn requests_since(&self, count: usize) -> Vec<ApiRequest> {
        self.state.script().requests[count..].to_vec()
    }

    /// The writes after the first `count` requests, whether they were forwarded or not.
    pub fn writes_since(&self, count: usize) -> Vec<ApiRequest> {
        let script = self.state.script();
        let writes = script.requests[count..].iter().filter(|request| script.is_counted(request));
        writes.cloned().collect()
    }

    /// Counts leases, events and reviews as writes, too, from now on.
    pub fn count_all_writes(&self) {
        self.state.script().counts_all = true;
    }

    /// Fails the `nth` write from now on, where 1 is the next, of those that nothing else is scheduled
    /// for. It is not forwarded.
    pub fn fail_write(&self, nth: usize, fault: ApiFault) {
        self.state
            .script()
            .schedule(Trigger::Write { nth, matches: Box::new(|_| true) }, Action::Fail(fault));
    }

    /// Fails the next request that matches. It is not forwarded.
    pub fn fail_next(&self, matches: impl Fn(&ApiRequest) -> bool + Send + 'static, fault: ApiFault) {
        self.state.script().schedule(Trigger::Request(Box::new(matches)), Action::Fail(fault));
    }

    /// At the `nth` write from now on, where 1 is the next, no request passes while `call` runs, which
    /// stops the program: before that write is forwarded, which it then never is, or after the API server
    /// has answered it, without the answer reaching the program. Then every connection is closed, and new
    /// ones pass.
    pub fn stop_at_write(
        &self,
        nth: usize,
        point: StopPoint,
        call: impl FnOnce() + Send + 'static,
    ) -> StopReached {
        self.stop_at_matching_write(|_| true, nth, point, call)
    }

    /// As [`Self::stop_at_write`], counting only the writes that match.
    pub fn stop_at_matching_write(
        &self,
        matches: impl Fn(&ApiRequest) -> bool + Send + 'static,
        nth: usize,
        point: StopPoint,
        call: impl FnOnce() + Send + 'static,
    ) -> StopReached {
        let (done, reached) = StopReached::new();
        let trigger = Trigger::Write { nth, matches: Box::new(matches) };
        self.state.script().schedule(trigger, Action::Stop { point, call: Box::new(call), done });
        reached
    }

    /// Holds the requests that match from now on, until [`Self::release`].
    pub fn hold(&self, matches: impl Fn(&ApiRequest) -> bool + Send + 'static) {
        self.state.script().held = Some(Box::new(matches));
        self.state.resume();
    }

    /// Forwards all requests that are held, and holds no more.
    pub fn release(&self) {
        self.state.script().held = None;
        self.state.resume();
    }

    /// Breaks the connection of every watch. Other requests are not affected.
    pub fn drop_watches(&self) {
        self.state.end_watches(WatchEnd::Broken);
    }

    /// Ends every watch as the API server does when etcd has compacted its resource version: with an event
    /// `ERROR` that is a 410. Other requests are not affected.
    pub fn expire_watches(&self) {
        self.state.end_watches(WatchEnd::Expired);
    }

    /// Closes every connection, and refuses new ones.
    pub async fn cut(&self) {
        let listening = lock(&self.listening).take();
        if let Some(listening) = listening {
            listening.abort();
            let _ = listening.await;
        }
    }

    /// Accepts connections again, unless it does already.
    ///
    /// # Panics
    /// Another process has its port.
    pub async fn restore(&self) {
        if lock(&self.listening).is_none() {
            let listener = TcpListener::bind(self.address).await.expect("the port is free");
            let task = tokio::spawn(forward::serve(listener, Arc::clone(&self.state)));
            *lock(&self.listening) = Some(task);
        }
    }
}

impl Drop for ApiProxy {
    fn drop(&mut self) {
        if let Some(listening) = lock(&self.listening).take() {
            listening.abort();
        }
    }
}

fn kubeconfig(address: SocketAddr, namespace: &str) -> String {
    format!(
        r#"apiVersion: v1
kind: Config
current-context: proxy
clusters:
- name: proxy
  cluster: {{server: "http://{address}"}}
users:
- name: proxy
  user: {{}}
contexts:
- name: proxy
  context: {{cluster: proxy, user: proxy, namespace: {namespace}}}
"#
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
