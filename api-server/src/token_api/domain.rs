//! `/v1/domains`: the custom domains of a tenant.

use crate::auth::LiveCaller;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::custom_domain::{self, DomainRoutes};
use crate::state::AppState;

/// The routes of `/v1/domains`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Live, summary);
    custom_domain::routes::<LiveCaller>(DomainRoutes {
        collection: "/v1/domains",
        item: "/v1/domains/{id}",
        list: operation("listOwnDomains", "List the custom domains"),
        create: operation("createOwnDomain", "Add a custom domain"),
        delete: operation("deleteOwnDomain", "Delete a custom domain with its mailboxes and mail"),
    })
}
