//! One domain's questions: who is asked them, and what they say.

use std::net::{IpAddr, SocketAddr};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use tempmail_runtime::config::DnsMode;
use tokio::time::{Instant, sleep, timeout_at};

use super::ask::ServerQuery;
use super::kind::{ALIASES_MAX, Kind, TXT};
use super::reading::{is_usable, read};
use super::zone::Zone;
use super::{Resolver, Transport};
use crate::finding::ServerAnswer;

/// What is asked about one domain, and until when.
#[derive(Debug)]
pub(super) struct Check<'a> {
    pub resolver: &'a Resolver,
    transport: Transport,
    deadline: Instant,
}

impl<'a> Check<'a> {
    pub(super) fn new(resolver: &'a Resolver, transport: Transport, deadline: Instant) -> Self {
        Self { resolver, transport, deadline }
    }

    /// What each server of the zone says of the records at `name`.
    pub(super) async fn records<R>(&self, zone: &Zone, name: &Name, kind: &Kind<R>) -> Vec<ServerAnswer<R>> {
        join_all(zone.servers.iter().map(async |server| match self.resolver.mode {
            DnsMode::Authoritative => match self.ask_name_server(*server, name, kind.record_type).await {
                Some(message) if message.metadata.authoritative => read(&message, name, 0, kind),
                _ => ServerAnswer::NoVote,
            },
            DnsMode::Recursive => match self.ask_seed(*server, name, kind.record_type).await {
                Some(message) => read(&message, name, kind.links, kind),
                None => ServerAnswer::NoVote,
            },
        }))
        .await
    }

    /// Asks the servers of each alias among the answers about `name`, and adds what they say.
    /// An alias that was met before, or is one too many, is left as it is.
    pub(super) async fn follow_aliases(&self, name: Name, answers: &mut Vec<ServerAnswer<Vec<u8>>>) {
        let mut names = vec![name];
        let mut next = 0;
        while next < answers.len() {
            if let ServerAnswer::Alias(target) = &answers[next]
                && !names.contains(target)
                && names.len() <= ALIASES_MAX
            {
                names.push(target.clone());
                let target = target.clone();
                let zone = self.zone_of(&target).await;
                answers.extend(self.records(&zone, &target, &TXT).await);
            }
            next += 1;
        }
    }

    /// The first usable answer of any seed, else any answer.
    pub(super) async fn ask_seeds(&self, name: &Name, record_type: RecordType) -> Option<Message> {
        let seeds = self.resolver.seeds.iter();
        let mut answers: FuturesUnordered<_> =
            seeds.map(|seed| self.ask_seed(*seed, name, record_type)).collect();
        let mut unusable = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Some(message) if is_usable(&message) => return Some(message),
                other => unusable = unusable.or(other),
            }
        }
        unusable
    }

    async fn ask_seed(&self, server: SocketAddr, name: &Name, record_type: RecordType) -> Option<Message> {
        let ask = ServerQuery { server, query: Query::query(name.clone(), record_type), recursion: true };
        timeout_at(self.deadline, ask.answer(self.transport)).await.ok().flatten()
    }

    async fn ask_name_server(
        &self,
        server: SocketAddr,
        name: &Name,
        record_type: RecordType,
    ) -> Option<Message> {
        let ask = ServerQuery { server, query: Query::query(name.clone(), record_type), recursion: false };
        let paced = async {
            self.wait_for_pace(server.ip()).await;
            ask.answer(self.transport).await
        };
        timeout_at(self.deadline, paced).await.ok().flatten()
    }

    async fn wait_for_pace(&self, server: IpAddr) {
        loop {
            let decision = self.resolver.pace.check(server.into());
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

    use tempmail_runtime::config::Dns;

    use super::*;

    /// The clock of the tasks stands still but for those who sleep.
    #[tokio::test(start_paused = true)]
    async fn one_address_is_paced_and_another_is_not_held_up_by_it() {
        let servers = vec![SocketAddr::from(([127, 0, 0, 1], 53))];
        let resolver = Resolver::new(&Dns { servers, ..Dns::default() }).unwrap();
        let start = Instant::now();
        let check = Check::new(&resolver, Transport::UdpFirst, start + Duration::from_secs(10));
        for address in [[192, 0, 2, 1], [192, 0, 2, 2]] {
            for _ in 0..50 {
                check.wait_for_pace(address.into()).await;
            }
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "as many as come in a second may come at once");
        for _ in 0..200 {
            check.wait_for_pace([192, 0, 2, 1].into()).await;
        }
        assert_ne!(start.elapsed(), Duration::ZERO);
    }
}
