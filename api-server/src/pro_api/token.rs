//! `/pro/api/tokens`: the Pro and live tokens of a tenant.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::auth::ProCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::api_token::{self, CreatedToken, TokenManager as _, TokenRoutes};
use crate::state::AppState;

/// The routes of `/pro/api/tokens`.
pub(super) fn routes() -> Routes<AppState> {
    let operation = |id, summary| Operation::new(id, Credential::Pro, summary);
    let shared = api_token::routes::<ProCaller>(TokenRoutes {
        collection: "/pro/api/tokens",
        item: "/pro/api/tokens/{id}",
        list: operation("listTokens", "List the API tokens")
            .description("Of both kinds. Revoked and expired tokens are listed for 7 more days."),
        revoke: operation("revokeToken", "Revoke an API token"),
    });
    shared.post(
        "/pro/api/tokens",
        operation("createToken", "Create an API token")
            .description("A token for one `address` is minted by a live token: `POST /v1/tokens`.")
            .body(ProCaller::KINDS.schema())
            .json::<CreatedToken>(201, "The token. This is the only time that it is shown.")
            .fails(&[code::TOKEN_LIMIT_REACHED]),
        create_token,
    )
}

async fn create_token(
    State(state): State<AppState>,
    caller: ProCaller,
    mut body: JsonObject,
) -> Result<(StatusCode, Json<CreatedToken>), ApiError> {
    // Whoever asks for less must not get a token that may do everything.
    if api_token::not_null(body.take("address")).is_some() {
        let how = "A token for one `address` is minted by a live token: POST /v1/tokens.";
        return Err(ApiError::InvalidRequest(how.into()));
    }
    Ok((StatusCode::CREATED, Json(api_token::create(&state, &caller, body).await?)))
}
