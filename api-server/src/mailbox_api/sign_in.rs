//! `POST /api/token`.

use axum::Json;
use axum::extract::State;
use serde_json::json;

use super::signed_in::SignedIn;
use crate::http::client::PublicCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::openapi::{Credential, Operation, Routes};
use crate::resources::mailbox::sign_in::sign_in;
use crate::state::AppState;

/// The route of `/api/token`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new().post(
        "/api/token",
        Operation::new("signIn", Credential::None, "Sign in to a mailbox")
            .body(json!({
                "type": "object",
                "required": ["address", "password"],
                "properties": {
                    "address": {"type": "string", "examples": ["hello@inbox.localhost"]},
                    "password": {"type": "string", "examples": ["correct horse"]},
                },
            }))
            .json::<SignedIn>(200, "A new JWT, for 7 days.")
            .fails(&[code::INVALID_CREDENTIALS, code::ACCOUNT_DISABLED]),
        create_token,
    )
}

/// Signs in to a mailbox.
async fn create_token(
    State(state): State<AppState>,
    PublicCaller { client }: PublicCaller,
    body: JsonObject,
) -> Result<Json<SignedIn>, ApiError> {
    let (mailbox, token) = sign_in(&state, client, body).await?;
    Ok(Json(SignedIn { id: mailbox.id, address: mailbox.address, token }))
}
