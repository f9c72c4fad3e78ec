//! `/v1/tokens`: the live tokens of a tenant, and those that they mint. Its Pro tokens are not visible here.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;

use super::minting::{self, CreatedLiveToken, MintRequest};
use crate::auth::LiveCaller;
use crate::http::error::{V1Error, code};
use crate::http::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::api_token::{self, CreatedToken, TokenManager as _, TokenRoutes};
use crate::state::AppState;

/// The routes of `/v1/tokens`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Live, summary);
    let shared = api_token::routes::<LiveCaller>(TokenRoutes {
        collection: "/v1/tokens",
        item: "/v1/tokens/{id}",
        list: operation("listLiveTokens", "List the live tokens").description(
            "Revoked and expired tokens are listed for 7 more days; minted ones are not listed.",
        ),
        revoke: operation("revokeLiveToken", "Revoke a live token"),
    });
    shared.post(
        "/v1/tokens",
        operation("createLiveToken", "Create a live token, or mint one for an address")
            .description(
                "With `address` the token is minted: it waits for, reads and deletes mail of that exact address and does \
                 nothing else, everything else is 404 to it, and it ends with the token that minted it. It does not count \
                 towards the tenant's tokens.",
            )
            .body(json!({"anyOf": [LiveCaller::KINDS.schema(), minting::schema()]}))
            .json::<CreatedLiveToken>(201, "The token. This is the only time that it is shown.")
            .fails(&[code::NOT_FOUND, code::TOKEN_LIMIT_REACHED]),
        create_token,
    )
}

async fn create_token(
    State(state): State<AppState>,
    caller: LiveCaller,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedLiveToken>), V1Error> {
    let created = match MintRequest::take_from(&state, &mut body)? {
        Some(request) => minting::mint(&state, caller, request).await?,
        None => {
            let CreatedToken { record, token } = api_token::create(&state, &caller, body).await?;
            CreatedLiveToken { record, token, address: None, since: None }
        }
    };
    Ok((StatusCode::CREATED, Json(created)))
}
