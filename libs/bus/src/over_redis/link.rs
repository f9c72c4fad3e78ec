//! The task that keeps this process and Redis together: connects, serves, and connects anew.

use std::sync::Arc;

use redis::Client;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use uuid::Uuid;

use super::away::Away;
use super::backoff::Backoff;
use super::commands::{Commands, Gate};
use super::desk::Desk;
use super::health::Health;
use super::message::{Content, Message};
use super::probe::Probe;
use super::publisher::Publisher;
use super::subscription::Subscription;
use crate::LocalBus;

/// See the module.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) channel: String,
    pub(super) sender: Uuid,
    pub(super) local: Arc<LocalBus>,
    pub(super) gate: Arc<Gate>,
    pub(super) desk: Desk,
    pub(super) publisher: Publisher,
    /// Told when Redis was found to be well or away.
    pub(super) first: Option<oneshot::Sender<()>>,
}

impl Link {
    /// Goes on until the process leaves, or nobody has the bus any more.
    pub(super) async fn run(mut self) {
        let mut health = Health::begin();
        let mut backoff = Backoff::new();
        loop {
            let ended = self.hold(&mut health, &mut backoff).await;
            self.gate.close();
            let Err(why) = ended else { return };
            health.is_away(&why);
            self.first.take();
            tokio::select! {
                () = sleep(backoff.next()) => {}
                () = alone(&mut self.desk, &mut self.publisher) => return,
            }
        }
    }

    /// Connects, and serves until Redis is away. A pair of connections lives and ends together.
    async fn hold(&mut self, health: &mut Health, backoff: &mut Backoff) -> Result<(), Away> {
        let Self { client, channel, sender, local, gate, desk, publisher, first } = self;
        let (commands, mut subscription) = tokio::select! {
            dialled = dial(client, channel) => dialled?,
            () = alone(desk, publisher) => return Ok(()),
        };
        let (came_back, seen) = watch::channel(0);
        let hear = |message: Message| match message.content {
            Content::Arrivals(arrivals) if message.sender != *sender => local.deliver(arrivals.into()),
            Content::Probe(number) if message.sender == *sender => drop(came_back.send_replace(number)),
            Content::Arrivals(_) | Content::Probe(_) => {}
        };
        let mut probe = Probe { commands: &commands, channel, sender: *sender, seen };
        let serve = async {
            tokio::select! {
                back = probe.once(1) => back?,
                () = alone(desk, publisher) => return Ok(()),
            }
            desk.join(&commands).await?;
            gate.open(commands.clone());
            health.is_connected();
            *backoff = Backoff::new();
            metrics::counter!("tempmail_bus_subscriptions_total").increment(1);
            // What was published before was not heard.
            local.deliver(Arc::new([]));
            first.take();
            tokio::select! {
                left = desk.serve(&commands) => left?,
                away = publisher.send(&commands) => return Err(away),
                away = probe.repeat() => return Err(away),
            }
            publisher.flush(&commands).await
        };
        tokio::select! {
            ended = serve => ended,
            away = subscription.receive(hear) => Err(away),
            away = commands.broken() => Err(away),
        }
    }
}

async fn dial(client: &Client, channel: &str) -> Result<(Arc<Commands>, Subscription), Away> {
    let commands = Commands::connect(client).await?;
    let subscription = Subscription::connect(client, channel).await?;
    Ok((Arc::new(commands), subscription))
}

/// What goes on without Redis; ends when the process leaves.
async fn alone(desk: &mut Desk, publisher: &mut Publisher) {
    tokio::select! {
        () = desk.serve_alone() => {}
        never = publisher.lose() => match never {},
    }
}
