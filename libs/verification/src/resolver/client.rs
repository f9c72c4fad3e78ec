//! Queries for one domain: to seeds and to name servers, over one transport and until one deadline.

use std::net::{IpAddr, SocketAddr};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use tempmail_bus::RateLimit;
use tempmail_runtime::config::DnsMode;
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::is_usable;
use super::server_query::{ServerQuery, Transport};

/// The servers to query, from the configuration, and how fast.
#[derive(Debug)]
pub(super) struct Servers {
    /// Whether the domain's own name servers are queried, or the seeds.
    pub mode: DnsMode,
    /// Resolvers that find name servers; in recursive mode they answer all queries.
    pub seeds: Vec<SocketAddr>,
    /// Port of the name servers.
    pub port: u16,
    /// Whether name servers may have private addresses.
    pub allow_private: bool,
    /// Of queries to one address of a name server.
    pub rate_limit: RateLimit,
}

/// Queries the servers for one domain.
#[derive(Debug)]
pub(super) struct DnsClient<'a> {
    pub servers: &'a Servers,
    pub transport: Transport,
    /// Later answers do not count.
    pub deadline: Instant,
}

impl DnsClient<'_> {
    /// The first usable answer of any seed, else any answer.
    pub(super) async fn query_seeds(&self, name: &Name, record_type: RecordType) -> Option<Message> {
        let seeds = self.servers.seeds.iter();
        let mut answers: FuturesUnordered<_> =
            seeds.map(|seed| self.query_seed(*seed, name, record_type)).collect();
        let mut unusable = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Some(message) if is_usable(&message) => return Some(message),
                other => unusable = unusable.or(other),
            }
        }
        unusable
    }

    /// The answer of a seed, which is queried with recursion.
    pub(super) async fn query_seed(
        &self,
        server: SocketAddr,
        name: &Name,
        record_type: RecordType,
    ) -> Option<Message> {
        let query = ServerQuery { server, query: Query::query(name.clone(), record_type), recursion: true };
        timeout_at(self.deadline, query.answer(self.transport)).await.ok().flatten()
    }

    /// The answer of a name server, which is queried without recursion and at a bounded rate.
    pub(super) async fn query_name_server(
        &self,
        server: SocketAddr,
        name: &Name,
        record_type: RecordType,
    ) -> Option<Message> {
        let query = ServerQuery { server, query: Query::query(name.clone(), record_type), recursion: false };
        let limited = async {
            self.wait_for_rate_limit(server.ip()).await;
            query.answer(self.transport).await
        };
        timeout_at(self.deadline, limited).await.ok().flatten()
    }

    async fn wait_for_rate_limit(&self, server: IpAddr) {
        loop {
            let decision = self.servers.rate_limit.check(server.into());
            if decision.allowed {
                return;
            }
            sleep(decision.retry_after).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Time advances only while all tasks sleep.
    #[tokio::test(start_paused = true)]
    async fn limits_the_rate_of_queries_by_address() {
        let seeds = vec![SocketAddr::from(([127, 0, 0, 1], 53))];
        let servers = Servers {
            mode: DnsMode::Authoritative,
            seeds,
            port: 53,
            allow_private: false,
            rate_limit: RateLimit::new("dns-questions", 50, Duration::from_secs(1)),
        };
        let start = Instant::now();
        let deadline = start + Duration::from_secs(10);
        let client = DnsClient { servers: &servers, transport: Transport::UdpFirst, deadline };
        for address in [[192, 0, 2, 1], [192, 0, 2, 2]] {
            for _ in 0..50 {
                client.wait_for_rate_limit(address.into()).await;
            }
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "a burst of one second's queries is permitted");
        for _ in 0..200 {
            client.wait_for_rate_limit([192, 0, 2, 1].into()).await;
        }
        assert_ne!(start.elapsed(), Duration::ZERO);
    }
}
