//! Connections that say nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use super::{Attack, AttackLog, AttackTarget, connect};

/// Connections of a client to SMTP: fewer than the 100 that it may have, since the victim at its address needs some,
/// and a session is ended for another one only after 5 s.
const SMTP_PER_CLIENT: usize = 90;
/// Connections of a client to the other ports: more than the 200 to HTTP that it may have, since a silent one is closed
/// for a new one at once.
const PER_CLIENT: usize = 250;
/// Connections that begin in a moment: more would wait in the listener's queue.
const STEP: usize = 250;
/// Time between two of these moments, and before a connection that was closed is opened again.
const PAUSE: Duration = Duration::from_millis(100);
const REOPEN: Duration = Duration::from_secs(1);
/// How the log calls the port of SMTP.
const SMTP: &str = "smtp";

/// Thousands of connections to a port that say nothing. Those that are closed are opened again.
pub(super) struct IdleConnections {
    /// How the log calls the port.
    port: &'static str,
    server: SocketAddr,
}

impl IdleConnections {
    /// One for each port: a thread may have as many open files as a process.
    pub(super) fn to_each_port(target: &AttackTarget) -> Vec<Box<dyn Attack>> {
        let listeners = &target.listeners;
        let admin = listeners.admin.iter().map(|&admin| ("admin", admin));
        let ports = [(SMTP, listeners.smtp), ("http", listeners.http)].into_iter().chain(admin);
        ports.map(|(port, server)| Box::new(Self { port, server }) as Box<dyn Attack>).collect()
    }

    async fn hold(&self, log: &AttackLog, from: Ipv4Addr, number: usize) {
        let Self { port, server } = *self;
        sleep(PAUSE * u32::try_from(number / STEP).unwrap_or(u32::MAX)).await;
        loop {
            match connect(server, from, None).await {
                Ok(mut stream) => {
                    log.record(format!("{port} opened"));
                    // The greeting of SMTP is read, too.
                    while stream.read(&mut [0; 512]).await.is_ok_and(|read| read > 0) {}
                    log.record(format!("{port} closed"));
                }
                Err(error) => log.record(format!("{port} {}", error.kind())),
            }
            sleep(REOPEN).await;
        }
    }
}

/// Address of the `number`th connection to a port: each client has its part, the first one at the attacker's address.
fn address(target: &AttackTarget, port: &str, number: usize) -> Ipv4Addr {
    let per_client = if port == SMTP { SMTP_PER_CLIENT } else { PER_CLIENT };
    match u16::try_from(number / per_client).unwrap_or(u16::MAX).to_be_bytes() {
        [0, 0] => target.attacker_address(),
        [high, low] => Ipv4Addr::new(127, 1, high, low),
    }
}

#[async_trait::async_trait]
impl Attack for IdleConnections {
    async fn run(&self, target: &AttackTarget, log: &AttackLog) {
        let hold = |number| self.hold(log, address(target, self.port, number), number);
        join_all((0..target.idle_connections).map(hold)).await;
    }
}
