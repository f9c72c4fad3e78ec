//! `/pro/api/tokens`: both kinds of tokens of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::api_token::{self, CreatedToken, Kinds, TokenList};
use crate::auth::ProCaller;
use crate::error::{ApiError, code};
use crate::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes, path_id};
use crate::parameter::{Page, PathId};
use crate::state::AppState;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new()
        .get(
            "/pro/api/tokens",
            Operation::new("listTokens", Credential::Pro, "List the API tokens")
                .description("Of both kinds; those that were revoked or have expired for 7 days more.")
                .page()
                .json::<TokenList>(200, "A page, newest first."),
            list_tokens,
        )
        .post(
            "/pro/api/tokens",
            Operation::new("createToken", Credential::Pro, "Create an API token")
                .body(Kinds::ProOrLive.schema())
                .json::<CreatedToken>(201, "The token, shown this once.")
                .fails(&[code::TOKEN_LIMIT_REACHED]),
            create_token,
        )
        .delete(
            "/pro/api/tokens/{id}",
            Operation::new("revokeToken", Credential::Pro, "Revoke an API token")
                .description("A token may revoke itself.")
                .parameter(path_id("Id of the token."))
                .empty(204, "It is refused from now on; what waits on it ends within 5 s.")
                .fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::MANAGED_BY_KUBERNETES]),
            revoke_token,
        )
}

async fn list_tokens(
    State(state): State<AppState>,
    caller: ProCaller,
    Page(page): Page,
) -> Result<Json<TokenList>, ApiError> {
    Ok(api_token::list(&state, caller.tenant, Kinds::ProOrLive, page).await?)
}

async fn create_token(
    State(state): State<AppState>,
    caller: ProCaller,
    body: JsonObject,
) -> Result<(StatusCode, Json<CreatedToken>), ApiError> {
    Ok(api_token::create(&state, caller.tenant, caller.token, Kinds::ProOrLive, body).await?)
}

async fn revoke_token(
    State(state): State<AppState>,
    caller: ProCaller,
    PathId(id): PathId,
) -> Result<StatusCode, ApiError> {
    let now = state.clock.now();
    state.store.revoke_token(caller.tenant, id, Kinds::ProOrLive.only(), now).await??;
    Ok(StatusCode::NO_CONTENT)
}
