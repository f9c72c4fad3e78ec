//! The task that keeps this process connected to Redis: connects, serves, and reconnects.

use std::sync::Arc;
use std::time::Duration;

use redis::Client;
use tempmail_model::chance;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::channel::{ChannelMessage, Content, Publisher, Subscription, publish_probe};
use super::commands::{Commands, CommandsHandle, Disconnected};
use super::permit_session::PermitSession;
use crate::local::LocalBus;

/// The first wait before reconnecting, and the longest.
const BACKOFF_MIN: Duration = Duration::from_millis(25);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Time between two probes.
const PROBE_PERIOD: Duration = Duration::from_secs(1);
/// Longest that a probe may take to come back.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Everything that the task serves.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) channel: String,
    pub(super) sender: Uuid,
    pub(super) local: Arc<LocalBus>,
    pub(super) commands: Arc<CommandsHandle>,
    pub(super) permits: PermitSession,
    pub(super) publisher: Publisher,
    /// Dropped when the first try to connect has succeeded or failed.
    pub(super) first_try: Option<oneshot::Sender<()>>,
}

impl Connection {
    /// Runs until the bus is closed or dropped.
    pub(super) async fn run(mut self) {
        let mut health = HealthReporter::new();
        let mut backoff = Backoff::new();
        loop {
            let ended = self.run_connection(&mut health, &mut backoff).await;
            self.commands.clear();
            let Err(reason) = ended else { return };
            health.disconnected(&reason);
            self.first_try.take();
            tokio::select! {
                () = sleep(backoff.next()) => {}
                () = serve_offline(&mut self.permits, &mut self.publisher) => return,
            }
        }
    }

    /// Connects, and serves until Redis is unavailable. Both connections live and end together.
    async fn run_connection(
        &mut self,
        health: &mut HealthReporter,
        backoff: &mut Backoff,
    ) -> Result<(), Disconnected> {
        let Self { client, channel, sender, local, commands: handle, permits, publisher, first_try } = self;
        let (commands, mut subscription) = tokio::select! {
            connections = connect(client, channel) => connections?,
            () = serve_offline(permits, publisher) => return Ok(()),
        };
        let (returned, last_returned) = watch::channel(0);
        let on_message = |message: ChannelMessage| match message.content {
            Content::Arrivals(arrivals) if message.sender != *sender => local.deliver(arrivals.into()),
            Content::Probe(number) if message.sender == *sender => drop(returned.send_replace(number)),
            Content::Arrivals(_) | Content::Probe(_) => {}
        };
        let mut prober = Prober { commands: &commands, channel, sender: *sender, last_returned };
        let serve = async {
            tokio::select! {
                probed = prober.probe(1) => probed?,
                () = serve_offline(permits, publisher) => return Ok(()),
            }
            permits.start(&commands).await?;
            handle.set(commands.clone());
            health.connected();
            *backoff = Backoff::new();
            // Subscribers may have missed what was published before.
            local.deliver(Arc::new([]));
            first_try.take();
            tokio::select! {
                closed = permits.serve(&commands) => closed?,
                disconnected = publisher.run(&commands) => return Err(disconnected),
                disconnected = prober.run() => return Err(disconnected),
            }
            publisher.flush(&commands).await
        };
        tokio::select! {
            ended = serve => ended,
            disconnected = subscription.receive(on_message) => Err(disconnected),
            disconnected = commands.broken() => Err(disconnected),
        }
    }
}

async fn connect(client: &Client, channel: &str) -> Result<(Arc<Commands>, Subscription), Disconnected> {
    let commands = Commands::connect(client).await?;
    let subscription = Subscription::connect(client, channel).await?;
    Ok((Arc::new(commands), subscription))
}

/// What continues without Redis; ends when the bus is closed.
async fn serve_offline(permits: &mut PermitSession, publisher: &mut Publisher) {
    tokio::select! {
        () = permits.serve_offline() => {}
        never = publisher.drop_all() => match never {},
    }
}

/// Checks that what is published comes back: a server may have lost the subscription while both connections
/// are healthy, which nothing else would show.
struct Prober<'a> {
    commands: &'a Commands,
    channel: &'a str,
    sender: Uuid,
    /// The last probe that came back.
    last_returned: watch::Receiver<u64>,
}

impl Prober<'_> {
    /// Sends a probe and waits until it comes back.
    async fn probe(&mut self, number: u64) -> Result<(), Disconnected> {
        publish_probe(self.commands, self.channel, self.sender, number).await?;
        match timeout(PROBE_TIMEOUT, self.last_returned.wait_for(|&last| last >= number)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Disconnected::because("what is published does not come back")),
        }
    }

    /// Sends probes after the first one, until one does not come back.
    async fn run(&mut self) -> Disconnected {
        let mut number = 1;
        loop {
            sleep(PROBE_PERIOD).await;
            number += 1;
            if let Err(disconnected) = self.probe(number).await {
                return disconnected;
            }
        }
    }
}

/// Waits between two tries to connect: doubles from 25 ms to 1 s. Each wait is between half of that and all
/// of it, so that processes do not reconnect at the same moment.
#[derive(Debug)]
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(BACKOFF_MIN)
    }

    fn next(&mut self) -> Duration {
        let longest = self.0;
        self.0 = (longest * 2).min(BACKOFF_MAX);
        longest.mul_f64(chance::factor(0.5..=1.0))
    }
}

/// Reports to metrics and the log whether Redis is connected: one log line a change.
struct HealthReporter {
    logged: Option<bool>,
}

impl HealthReporter {
    /// Until Redis is connected, limits hold in each process alone.
    fn new() -> Self {
        set_degraded(true);
        Self { logged: None }
    }

    fn connected(&mut self) {
        if self.logged != Some(true) {
            tracing::info!("Redis is connected: limits hold over all processes");
        }
        self.logged = Some(true);
        set_degraded(false);
        metrics::counter!("tempmail_bus_connections_total").increment(1);
    }

    fn disconnected(&mut self, reason: &Disconnected) {
        if self.logged != Some(false) {
            tracing::warn!(
                %reason,
                "Redis is unavailable: limits hold in each process alone, and arrivals are found by polling"
            );
        }
        self.logged = Some(false);
        set_degraded(true);
    }
}

fn set_degraded(degraded: bool) {
    metrics::gauge!("tempmail_bus_degraded").set(if degraded { 1.0 } else { 0.0 });
}
