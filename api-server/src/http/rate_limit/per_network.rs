//! Limits by client: each of its networks counts, and the wider ones have more.

use tempmail_admission::{ClientNetwork, NETWORK_TIMES};

use crate::http::client::Client;

/// The limits of the networks of a client, narrowest first.
pub(super) struct PerNetwork<L>([L; NETWORK_TIMES.len()]);

impl<L> PerNetwork<L> {
    /// With those that `limit` makes of how many times the limit of one client a network has.
    pub(super) fn new(limit: impl Fn(u32) -> L) -> Self {
        Self(NETWORK_TIMES.map(limit))
    }

    /// The limits of a client, with the network that each counts by; none for a client without limits.
    pub(super) fn of(&self, client: Client) -> impl Iterator<Item = (&L, ClientNetwork)> {
        self.0.iter().zip(client.networks().map(|(network, _)| network))
    }
}

#[cfg(test)]
mod tests {
    use tempmail_admission::Client as Origin;

    use super::*;

    #[test]
    fn has_the_limit_of_each_network() {
        let limits = PerNetwork::new(|times| 10 * times);
        for address in ["192.0.2.1", "2001:db8::1"] {
            let origin = Origin::Address(address.parse().unwrap());
            let limited = limits.of(Client { origin, unlimited: false });
            let expected: Vec<_> = origin.networks().map(|(network, times)| (10 * times, network)).collect();
            assert_eq!(limited.map(|(limit, network)| (*limit, network)).collect::<Vec<_>>(), expected);
            assert_eq!(limits.of(Client { origin, unlimited: true }).count(), 0);
        }
    }
}
