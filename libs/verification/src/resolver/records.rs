//! The records of a domain as each of its servers answers.

use futures_util::future::join_all;
use hickory_proto::rr::Name;
use tempmail_runtime::config::DnsMode;

use super::answer::read_answer;
use super::client::Client;
use super::record_kind::{ALIASES_MAX, RecordKind, TXT};
use super::zone::{Zone, find_zone};
use crate::vote::ServerAnswer;

/// What each server of the zone answers about the records at `name`.
pub(super) async fn query_records<R>(
    client: &Client<'_>,
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
    client: &Client<'_>,
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
