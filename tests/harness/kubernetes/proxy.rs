//! A proxy between a program and the API server, which sees what the program asks for and fails it
//! where a test says so.

mod fault;
mod forward;
mod request;
mod script;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use self::fault::Fault;
use self::forward::{End, Way};
pub use self::request::{ApiRequest, Verb};
use self::script::{Act, Pick};
pub use self::script::{Reached, When};
use super::Cluster;
use crate::port::free_port;

/// A proxy on loopback that speaks plain HTTP with the program, and with the API server as the
/// cluster's administrator or as a user. Watches pass unbuffered.
#[derive(Debug)]
pub struct ApiProxy {
    address: SocketAddr,
    directory: tempfile::TempDir,
    way: Arc<Way>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl ApiProxy {
    /// One that asks as the administrator.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start(cluster: &Cluster) -> Self {
        Self::to(cluster.config.clone()).await
    }

    /// One that asks as this user of these groups, so that a program may do what that user may.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start_as(cluster: &Cluster, user: &str, groups: &[&str]) -> Self {
        Self::to(cluster.config_as(user, groups)).await
    }

    async fn to(mut api_server: Config) -> Self {
        // What the API server answers is the program's to repeat.
        api_server.default_retry = false;
        let address = free_port();
        let directory = tempfile::tempdir().expect("a directory can be made");
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig(address))
            .expect("a file can be written");
        let client = Client::try_from(api_server).expect("the kubeconfig is one");
        let way = Arc::new(Way::to(client));
        let proxy = Self { address, directory, way, listening: Mutex::default() };
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

    /// A client through it.
    ///
    /// # Panics
    /// Never: its address is a URL.
    pub fn client(&self) -> Client {
        let url = format!("http://{}", self.address).parse().expect("a URL");
        Client::try_from(Config::new(url)).expect("it needs no credentials")
    }

    /// Everything that was asked for so far, in order, whether it was let through or not.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.way.script().requests.clone()
    }

    /// How often it was asked for this.
    pub fn count(&self, verb: Verb) -> usize {
        self.way.script().requests.iter().filter(|request| request.verb == verb).count()
    }

    /// How many requests there were so far: for [`Self::writes_since`].
    pub fn asked(&self) -> usize {
        self.way.script().requests.len()
    }

    /// The writes after the first `asked` requests, whether they were let through or not.
    pub fn writes_since(&self, asked: usize) -> Vec<ApiRequest> {
        let script = self.way.script();
        let writes = script.requests[asked..].iter().filter(|request| script.is_counted(request));
        writes.cloned().collect()
    }

    /// From now on leases, events and reviews are counted as writes too.
    pub fn count_all_writes(&self) {
        self.way.script().counts_all = true;
    }

    /// Fails the `nth` write from now on, where 1 is the next, of those that nothing else is told
    /// to happen to. It is not forwarded.
    pub fn fail_write(&self, nth: usize, fault: Fault) {
        self.way.script().will(Pick::Write { nth, picks: Box::new(|_| true) }, Act::Fail(fault));
    }

    /// Fails the next request that `picks` picks. It is not forwarded.
    pub fn fail_next(&self, picks: impl Fn(&ApiRequest) -> bool + Send + 'static, fault: Fault) {
        self.way.script().will(Pick::If(Box::new(picks)), Act::Fail(fault));
    }

    /// At the `nth` write from now on, where 1 is the next, no request passes while `call` runs,
    /// which kills the program: before that write is forwarded, which it then never is, or
    /// after the API server has answered it, which the program then never hears. Thereafter every
    /// connection is closed, and new ones pass.
    pub fn at_write(&self, nth: usize, when: When, call: impl FnOnce() + Send + 'static) -> Reached {
        self.at_write_that(|_| true, nth, when, call)
    }

    /// As [`Self::at_write`], where only the writes that `picks` picks are counted.
    pub fn at_write_that(
        &self,
        picks: impl Fn(&ApiRequest) -> bool + Send + 'static,
        nth: usize,
        when: When,
        call: impl FnOnce() + Send + 'static,
    ) -> Reached {
        let (tell, reached) = Reached::new();
        let pick = Pick::Write { nth, picks: Box::new(picks) };
        self.way.script().will(pick, Act::Stop { when, call: Box::new(call), tell });
        reached
    }

    /// Keeps the requests that `picks` picks from now on, until [`Self::release`].
    pub fn hold(&self, picks: impl Fn(&ApiRequest) -> bool + Send + 'static) {
        self.way.script().holds = Some(Box::new(picks));
        self.way.go_on();
    }

    /// Lets go of all that it holds, and holds nothing more.
    pub fn release(&self) {
        self.way.script().holds = None;
        self.way.go_on();
    }

    /// Breaks every watch off. Other requests go on.
    pub fn drop_watches(&self) {
        self.way.end_watches(End::Broken);
    }

    /// Ends every watch as the API server does where etcd has compacted what it would go on from: an
    /// event `ERROR` that is a 410, and no more. Other requests go on.
    pub fn expire_watches(&self) {
        self.way.end_watches(End::Expired);
    }

    /// Closes every connection, and refuses new ones.
    pub async fn cut(&self) {
        let listening = lock(&self.listening).take();
        if let Some(listening) = listening {
            listening.abort();
            let _ = listening.await;
        }
    }

    /// Takes connections again. Nothing where it does.
    ///
    /// # Panics
    /// Somebody else has its port.
    pub async fn restore(&self) {
        if lock(&self.listening).is_none() {
            let listener = TcpListener::bind(self.address).await.expect("the port is ours");
            let task = tokio::spawn(forward::serve(listener, Arc::clone(&self.way)));
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

fn kubeconfig(address: SocketAddr) -> String {
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
  context: {{cluster: proxy, user: proxy, namespace: default}}
"#
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
