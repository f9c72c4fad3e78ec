//! `/pro/api/tokens`: the Pro and live tokens of a tenant.

use crate::auth::ProCaller;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::api_token::{self, TokenRoutes};
use crate::state::AppState;

/// The routes of `/pro/api/tokens`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Pro, summary);
    api_token::routes::<ProCaller>(TokenRoutes {
        collection: "/pro/api/tokens",
        item: "/pro/api/tokens/{id}",
        list: operation("listTokens", "List the API tokens")
            .description("Of both kinds. Revoked and expired tokens are listed for 7 more days."),
        create: operation("createToken", "Create an API token"),
        revoke: operation("revokeToken", "Revoke an API token"),
    })
}
