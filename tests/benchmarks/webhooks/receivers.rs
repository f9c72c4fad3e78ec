//! Receivers of webhooks over TLS, all on one thread, which does as little as it can.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tempmail_tests::receiver::Identity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::realtime::delivery_log::DeliveryLog;
use crate::server::cpu;

/// The thread.
#[derive(Debug)]
pub struct Receivers {
    runtime: Option<Runtime>,
    thread: u32,
}

/// What a group of receivers does with its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverBehaviour {
    /// Answers 204 after so long.
    Answers(Duration),
    /// Takes them and never answers.
    Never,
}

/// Receivers, each at a port of its own. They end when they are dropped.
#[derive(Debug)]
pub struct ReceiverGroup {
    /// Where they are.
    pub urls: Vec<String>,
    shared: Arc<ReceiverState>,
    _listeners: JoinSet<()>,
}

#[derive(Debug)]
struct ReceiverState {
    reaction: ReceiverBehaviour,
    delivery_log: Mutex<Arc<DeliveryLog>>,
    begun: Instant,
    connections: AtomicU64,
    requests: AtomicU64,
    /// Nanoseconds since `begun`.
    first: AtomicU64,
    last: AtomicU64,
}

impl Receivers {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is none.
    pub fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let _ = sender.send(std::fs::read_link("/proc/thread-self"));
        });
        let path = receiver.recv()??;
        let thread = path.file_name().and_then(|id| id.to_str()?.parse().ok());
        Ok(Self { runtime: Some(runtime), thread: thread.context("Linux does not name the thread")? })
    }

    /// Processor time of the thread so far.
    pub fn cpu(&self) -> Duration {
        cpu::of_thread(self.thread)
    }

    /// So many receivers, which record their requests in `delivery_log`; the first of them is its receiver
    /// `first`.
    ///
    /// # Errors
    /// There are no ports.
    pub async fn group(
        &self,
        first: u32,
        count: u32,
        reaction: ReceiverBehaviour,
        delivery_log: Arc<DeliveryLog>,
    ) -> anyhow::Result<ReceiverGroup> {
        let acceptor = TlsAcceptor::from(Arc::new(Identity::issued_for(&["localhost"]).server_config()));
        let shared = Arc::new(ReceiverState {
            reaction,
            delivery_log: Mutex::new(delivery_log),
            begun: Instant::now(),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
        });
        let (mut urls, mut listeners) = (Vec::new(), JoinSet::new());
        for receiver in first..first + count {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            urls.push(format!("https://localhost:{}/", listener.local_addr()?.port()));
            let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
            listeners.spawn_on(
                async move {
                    if let Ok(listener) = TcpListener::from_std(listener) {
                        serve(&listener, &acceptor, &shared, receiver).await;
                    }
                },
                self.handle(),
            );
        }
        Ok(ReceiverGroup { urls, shared, _listeners: listeners })
    }

    fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("it is there until it is dropped").handle()
    }
}

impl Drop for Receivers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ReceiverGroup {
    /// Records requests in another delivery log from now on.
    pub fn record_in(&self, delivery_log: &Arc<DeliveryLog>) {
        *self.shared.delivery_log.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(delivery_log);
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Time from the first request to the last one.
    pub fn span(&self) -> Duration {
        let [first, last] = [&self.shared.first, &self.shared.last].map(|at| at.load(Ordering::Relaxed));
        Duration::from_nanos(last.saturating_sub(first))
    }
}

async fn serve(listener: &TcpListener, acceptor: &TlsAcceptor, shared: &Arc<ReceiverState>, receiver: u32) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(shared));
        connections.spawn(async move {
            // One that breaks is the sender's affair: what is missing is counted.
            let _ = answer(stream, &acceptor, &shared, receiver).await;
        });
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    shared: &ReceiverState,
    receiver: u32,
) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut input = Vec::with_capacity(4 << 10);
    while let Some(length) = read_request(&mut stream, &mut input).await? {
        shared.received(receiver, &String::from_utf8_lossy(&input[..length]));
        input.drain(..length);
        match shared.reaction {
            ReceiverBehaviour::Answers(after) => {
                if !after.is_zero() {
                    tokio::time::sleep(after).await;
                }
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
                stream.flush().await?;
            }
            ReceiverBehaviour::Never => std::future::pending().await,
        }
    }
    Ok(())
}

/// Reads a whole request and returns its length; `None` at the end.
async fn read_request(
    stream: &mut TlsStream<TcpStream>,
    input: &mut Vec<u8>,
) -> anyhow::Result<Option<usize>> {
    loop {
        let head = input.windows(4).position(|octets| octets == b"\r\n\r\n");
        if let Some(head) = head {
            let fields = str::from_utf8(&input[..head])?;
            let length = fields.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.context("a request without a length")?.parse()?;
            if input.len() >= head + 4 + length {
                return Ok(Some(head + 4 + length));
            }
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

impl ReceiverState {
    fn received(&self, receiver: u32, request: &str) {
        let at = Instant::now();
        let nanoseconds = u64::try_from(at.duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX);
        self.delivery_log.lock().unwrap_or_else(PoisonError::into_inner).seen(receiver, request, at);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.first.fetch_min(nanoseconds, Ordering::Relaxed);
        self.last.fetch_max(nanoseconds, Ordering::Relaxed);
    }
}
