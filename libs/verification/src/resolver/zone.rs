//! The zone of a name, its servers, and what each of them answers.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::join_all;
use hickory_proto::op::Message;
use hickory_proto::rr::Name;
use tempmail_model::network::is_public;
use tempmail_runtime::config::DnsMode;
use tokio::join;

use super::answer::{A, AAAA, ALIASES_MAX, NS, RecordKind, TXT, apex, is_usable, read_answer};
use super::client::DnsClient;
use crate::vote::ServerAnswer;

/// Name servers of a zone that are queried at most.
const NAME_SERVERS_MAX: usize = 13;
/// Addresses of name servers that are queried at most.
const ADDRESSES_MAX: usize = 26;

/// A zone and the servers that answer for its names.
#[derive(Debug, Clone, Default)]
pub(super) struct Zone {
    apex: Option<Name>,
    /// Each of them is queried and has a vote.
    pub servers: Vec<SocketAddr>,
}

impl Zone {
    /// Whether `name`, a parent of the name that this zone was found for, is in this zone, too.
    pub(super) fn contains(&self, name: &Name) -> bool {
        self.apex.as_ref().is_some_and(|apex| apex.zone_of(name))
    }
}

/// The zone of `name`; one without servers if none is found.
pub(super) async fn find_zone(client: &DnsClient<'_>, name: &Name) -> Zone {
    let servers = client.servers;
    if servers.mode == DnsMode::Recursive {
        return Zone { apex: Some(Name::root()), servers: servers.seeds.clone() };
    }
    let Some((apex, hosts)) = find_name_servers(client, name).await else { return Zone::default() };
    let addresses = hosts.iter().take(NAME_SERVERS_MAX).map(|host| find_addresses(client, host));
    let addresses = interleave(&join_all(addresses).await).into_iter();
    let allowed = addresses.filter(|address| servers.allow_private || is_public(*address));
    let addresses = allowed.map(|address| SocketAddr::new(address, servers.port));
    Zone { apex: Some(apex), servers: addresses.take(ADDRESSES_MAX).collect() }
}

/// Goes up from `name` to the next zone cut: its name and its name servers. The root is never a custom domain, so it
/// is not queried.
async fn find_name_servers(client: &DnsClient<'_>, name: &Name) -> Option<(Name, Vec<Name>)> {
    let mut candidate = name.clone();
    while !candidate.is_root() {
        let message = client.query_seeds(&candidate, NS.record_type).await?;
        if let ServerAnswer::Records { records: hosts, .. } =
            read_answer(&message, &candidate, NS.max_aliases, &NS)
            && !hosts.is_empty()
        {
            return Some((candidate, hosts));
        }
        candidate = next_candidate(&message, &candidate);
    }
    None
}

async fn find_addresses(client: &DnsClient<'_>, host: &Name) -> Vec<IpAddr> {
    let (v4, v6) =
        join!(find_addresses_of_kind(client, host, &A), find_addresses_of_kind(client, host, &AAAA));
    [v4, v6].concat()
}

async fn find_addresses_of_kind(
    client: &DnsClient<'_>,
    host: &Name,
    kind: &RecordKind<IpAddr>,
) -> Vec<IpAddr> {
    match client.query_seeds(host, kind.record_type).await {
        Some(message) => match read_answer(&message, host, kind.max_aliases, kind) {
            ServerAnswer::Records { records: addresses, .. } => addresses,
            ServerAnswer::Alias(_) | ServerAnswer::NoVote => Vec::new(),
        },
        None => Vec::new(),
    }
}

/// The next name to query after a name that is not a zone cut.
///
/// A negative answer names its zone. An alias does not, since the answer is then about its target; neither does a
/// failure, since some servers can't answer for this type below their apex.
fn next_candidate(message: &Message, candidate: &Name) -> Name {
    let is_negative = is_usable(message) && message.answers.is_empty();
    match apex(message) {
        Some(apex) if is_negative && apex.zone_of(candidate) && apex != candidate => apex.clone(),
        _ => candidate.base_name(),
    }
}

/// The first address of each host, then the second of each, and so on; each address once.
fn interleave(hosts: &[Vec<IpAddr>]) -> Vec<IpAddr> {
    let most = hosts.iter().map(Vec::len).max().unwrap_or_default();
    let mut addresses = Vec::new();
    for turn in 0..most {
        for address in hosts.iter().filter_map(|host| host.get(turn)) {
            if !addresses.contains(address) {
                addresses.push(*address);
            }
        }
    }
    addresses
}

/// What each server of the zone answers about the records at `name`.
pub(super) async fn query_records<R>(
    client: &DnsClient<'_>,
    zone: &Zone,
    name: &Name,
    kind: &RecordKind<R>,
) -> Vec<ServerAnswer<R>> {
    join_all(zone.servers.iter().map(async |server| match client.servers.mode {
        DnsMode::Authoritative => match client.query_name_server(*server, name, kind.record_type).await {
            Some(message) if message.metadata.authoritative => read_answer(&message, name, 0, kind),
            _ => ServerAnswer::NoVote,
        },
        DnsMode::Recursive => match client.query_seed(*server, name, kind.record_type).await {
            Some(message) => read_answer(&message, name, kind.max_aliases, kind),
            None => ServerAnswer::NoVote,
        },
    }))
    .await
}

/// Queries the servers of each alias among the answers about `name`, and adds what they answer. An alias that
/// was followed before, or exceeds [`ALIASES_MAX`], stays as it is.
pub(super) async fn follow_aliases(
    client: &DnsClient<'_>,
    name: Name,
    answers: &mut Vec<ServerAnswer<Vec<u8>>>,
) {
    let mut names = vec![name];
    let mut next = 0;
    while next < answers.len() {
        if let ServerAnswer::Alias(target) = &answers[next]
            && !names.contains(target)
            && names.len() <= ALIASES_MAX
        {
            names.push(target.clone());
            let target = target.clone();
            let zone = find_zone(client, &target).await;
            answers.extend(query_records(client, &zone, &target, &TXT).await);
        }
        next += 1;
    }
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::{OpCode, ResponseCode};
    use hickory_proto::rr::rdata::{CNAME, SOA};
    use hickory_proto::rr::{RData, Record};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn negative(response_code: ResponseCode, apex: &str) -> Message {
        let mut message = Message::error_msg(1, OpCode::Query, response_code);
        let soa = SOA::new(name(apex), name(apex), 1, 1, 1, 1, 1);
        message.add_authority(Record::from_rdata(name(apex), 1, RData::SOA(soa)));
        message
    }

    #[test]
    fn continues_at_the_zone_of_a_negative_answer() {
        let candidate = name("_tempmail.a.b.acme.test.");
        for response_code in [ResponseCode::NoError, ResponseCode::NXDomain] {
            let message = negative(response_code, "acme.test.");
            assert_eq!(next_candidate(&message, &candidate), name("acme.test."));
        }
    }

    #[test]
    fn continues_at_the_parent_without_a_zone_above() {
        let candidate = name("_tempmail.acme.test.");
        let mut alias = negative(ResponseCode::NoError, "test.");
        let target = RData::CNAME(CNAME(name("elsewhere.test.")));
        alias.add_answer(Record::from_rdata(candidate.clone(), 1, target));
        for message in [
            alias,
            negative(ResponseCode::ServFail, "test."),
            negative(ResponseCode::NoError, "elsewhere.test."),
            negative(ResponseCode::NoError, "_tempmail.acme.test."),
            Message::error_msg(1, OpCode::Query, ResponseCode::NXDomain),
        ] {
            assert_eq!(next_candidate(&message, &candidate), name("acme.test."), "{message:?}");
        }
    }

    #[test]
    fn addresses_are_taken_interleave_and_once() {
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let hosts =
            [vec![address(1), address(2), address(3)], vec![], vec![address(4), address(1), address(5)]];
        assert_eq!(interleave(&hosts), [1, 4, 2, 3, 5].map(address));
    }
}
