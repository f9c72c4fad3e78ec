//! `/v1/tokens`: live tokens of a tenant; its Pro tokens do not exist here.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::api_token::{self, CreatedToken, Kinds, TokenList};
use crate::auth::LiveCaller;
use crate::error::{V1Error, code};
use crate::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::parameter::{Page, PathId};
use crate::state::AppState;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new()
        .get(
            "/v1/tokens",
            Operation::new("listLiveTokens", Credential::Live, "List the live tokens")
                .description("Those that were revoked or have expired for 7 days more.")
                .page()
                .json::<TokenList>(200, "A page, newest first."),
            list_tokens,
        )
        .post(
            "/v1/tokens",
            Operation::new("createLiveToken", Credential::Live, "Create a live token")
                .body(Kinds::LiveAlone.schema())
                .json::<CreatedToken>(201, "The token, shown this once.")
                .fails(&[code::TOKEN_LIMIT_REACHED]),
            create_token,
        )
        .delete(
            "/v1/tokens/{id}",
            Operation::new("revokeLiveToken", Credential::Live, "Revoke a live token")
                .description("A token may revoke itself.")
                .parameter(path_id("Id of the token."))
                .empty(204, "It is refused from now on; what waits on it ends within 5 s.")
                .fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::MANAGED_BY_KUBERNETES]),
            revoke_token,
        )
}

async fn list_tokens(
    State(state): State<AppState>,
    caller: LiveCaller,
    Page(page): Page,
) -> Result<Json<TokenList>, V1Error> {
    Ok(api_token::list(&state, caller.tenant, Kinds::LiveAlone, page).await?)
}

async fn create_token(
    State(state): State<AppState>,
    caller: LiveCaller,
    body: JsonObject,
) -> Result<(StatusCode, Json<CreatedToken>), V1Error> {
    Ok(api_token::create(&state, caller.tenant, caller.token, Kinds::LiveAlone, body).await?)
}

async fn revoke_token(
    State(state): State<AppState>,
    caller: LiveCaller,
    PathId(id): PathId,
) -> Result<StatusCode, V1Error> {
    let now = state.clock.now();
    state.store.revoke_token(caller.tenant, id, Kinds::LiveAlone.only(), now).await??;
    Ok(StatusCode::NO_CONTENT)
}
