//! `/v1`: the token API. Inboxes are identified by e-mail address, without creating a mailbox first.

mod address;
mod config;
mod email;
mod inbox;
mod mail_wait;
mod minting;
mod stream;
mod token;
mod wait;

use crate::auth::LiveCaller;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::custom_domain::{self, DomainRoutes};
use crate::state::AppState;

/// The routes of `/v1`.
pub(crate) fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(config::routes())
        .merge(inbox::routes())
        .merge(mail_wait::routes())
        .merge(email::routes())
        .merge(stream::routes())
        .merge(domain_routes())
        .merge(token::routes())
}

/// The routes of `/v1/domains`: the custom domains of the tenant.
fn domain_routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Live, summary);
    custom_domain::routes::<LiveCaller>(DomainRoutes {
        collection: "/v1/domains",
        item: "/v1/domains/{id}",
        list: operation("listOwnDomains", "List the custom domains"),
        create: operation("createOwnDomain", "Add a custom domain"),
        delete: operation("deleteOwnDomain", "Delete a custom domain with its mailboxes and mail"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the future of a handler with five arguments.
    fn size5<A, B, C, D, E, F>(_: impl Fn(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }

    /// The same with six.
    fn size6<A, B, C, D, E, G, F>(_: impl Fn(A, B, C, D, E, G) -> F) -> usize {
        size_of::<F>()
    }

    /// A request that waits keeps its handler's future: tens of thousands may wait in a process.
    #[test]
    fn bounds_the_futures_of_handlers_that_wait() {
        for (name, size) in [
            ("inbox", size6(inbox::wait_on_inbox)),
            ("domain", size6(inbox::wait_on_domain)),
            ("owned", size5(inbox::wait_on_owned)),
            ("mail wait", size5(mail_wait::wait_for_email)),
            ("stream of an address", size5(stream::stream_address)),
            ("stream", size5(stream::stream_owned)),
        ] {
            assert!(size <= 4 << 10, "{name}: {size}");
        }
    }
}
