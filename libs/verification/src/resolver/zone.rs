//! Which servers are responsible for a name.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::join_all;
use hickory_proto::op::Message;
use hickory_proto::rr::Name;
use tempmail_runtime::config::DnsMode;
use tokio::join;

use super::check::Check;
use super::kind::{A, AAAA, Kind, NS};
use super::reading::{apex, is_usable, read};
use crate::finding::ServerAnswer;
use tempmail_model::network::is_public;

/// Name servers of a zone that are asked.
const NAME_SERVERS_MAX: usize = 13;
/// Addresses of them that are asked.
const ADDRESSES_MAX: usize = 26;

/// Who answers for the names of a zone.
#[derive(Debug, Clone, Default)]
pub(super) struct Zone {
    apex: Option<Name>,
    /// Each is asked, and each has a vote.
    pub servers: Vec<SocketAddr>,
}

impl Zone {
    /// Whether `name`, a parent of the name that this zone was found for, is in it too.
    pub(super) fn holds(&self, name: &Name) -> bool {
        self.apex.as_ref().is_some_and(|apex| apex.zone_of(name))
    }
}

impl Check<'_> {
    /// The zone that `name` is in; one without servers if nobody tells.
    pub(super) async fn zone_of(&self, name: &Name) -> Zone {
        if self.resolver.mode == DnsMode::Recursive {
            return Zone { apex: Some(Name::root()), servers: self.resolver.seeds.clone() };
        }
        let Some((apex, hosts)) = self.name_servers(name).await else { return Zone::default() };
        let addresses = hosts.iter().take(NAME_SERVERS_MAX).map(|host| self.addresses(host));
        let addresses = in_turns(&join_all(addresses).await).into_iter();
        let allowed = addresses.filter(|address| self.resolver.allow_private || is_public(*address));
        let servers = allowed.map(|address| SocketAddr::new(address, self.resolver.port));
        Zone { apex: Some(apex), servers: servers.take(ADDRESSES_MAX).collect() }
    }

    /// Climbs from `name` to the next zone cut. The root is nobody's domain: it is not asked.
    async fn name_servers(&self, name: &Name) -> Option<(Name, Vec<Name>)> {
        let mut candidate = name.clone();
        while !candidate.is_root() {
            let message = self.ask_seeds(&candidate, NS.record_type).await?;
            if let ServerAnswer::Records { records: hosts, .. } = read(&message, &candidate, NS.links, &NS)
                && !hosts.is_empty()
            {
                return Some((candidate, hosts));
            }
            candidate = next_candidate(&message, &candidate);
        }
        None
    }

    async fn addresses(&self, host: &Name) -> Vec<IpAddr> {
        let (v4, v6) = join!(self.addresses_of(host, &A), self.addresses_of(host, &AAAA));
        [v4, v6].concat()
    }

    async fn addresses_of(&self, host: &Name, kind: &Kind<IpAddr>) -> Vec<IpAddr> {
        match self.ask_seeds(host, kind.record_type).await {
            Some(message) => match read(&message, host, kind.links, kind) {
                ServerAnswer::Records { records: addresses, .. } => addresses,
                ServerAnswer::Alias(_) | ServerAnswer::NoVote => Vec::new(),
            },
            None => Vec::new(),
        }
    }
}

/// Where the climb goes on from a name that is no zone cut.
///
/// A negative answer tells the zone. An alias does not: the zone is its target's then. Neither
/// does a failure: some servers can't answer for this type below their apex.
fn next_candidate(message: &Message, candidate: &Name) -> Name {
    let is_negative = is_usable(message) && message.answers.is_empty();
    match apex(message) {
        Some(apex) if is_negative && apex.zone_of(candidate) && apex != candidate => apex.clone(),
        _ => candidate.base_name(),
    }
}

/// The first address of each host, then the second of each, and so on; each address once.
fn in_turns(hosts: &[Vec<IpAddr>]) -> Vec<IpAddr> {
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
    fn a_negative_answer_tells_the_zone() {
        let candidate = name("_tempmail.a.b.acme.test.");
        for response_code in [ResponseCode::NoError, ResponseCode::NXDomain] {
            let message = negative(response_code, "acme.test.");
            assert_eq!(next_candidate(&message, &candidate), name("acme.test."));
        }
    }

    #[test]
    fn what_tells_no_zone_above_leads_to_the_parent() {
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
    fn addresses_are_taken_in_turns_and_once() {
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let hosts =
            [vec![address(1), address(2), address(3)], vec![], vec![address(4), address(1), address(5)]];
        assert_eq!(in_turns(&hosts), [1, 4, 2, 3, 5].map(address));
    }
}
