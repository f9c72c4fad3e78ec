//! `/v1/tokens`: the live tokens of a tenant. Its Pro tokens are not visible here.

use crate::auth::LiveCaller;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::api_token::{self, TokenRoutes};
use crate::state::AppState;

/// The routes of `/v1/tokens`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Live, summary);
    api_token::routes::<LiveCaller>(TokenRoutes {
        collection: "/v1/tokens",
        item: "/v1/tokens/{id}",
        list: operation("listLiveTokens", "List the live tokens")
            .description("Revoked and expired tokens are listed for 7 more days."),
        create: operation("createLiveToken", "Create a live token"),
        revoke: operation("revokeLiveToken", "Revoke a live token"),
    })
}
