//! `POST /pro/api/session`: signs in to a dashboard.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::json;
use tempmail_model::timestamp::timestamp;
use tempmail_store::Actor;
use utoipa::ToSchema;

use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::public_caller::PublicCaller;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// The route of `/pro/api/session`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new().post(
        "/pro/api/session",
        Operation::new("createSession", Credential::None, "Exchange a Pro token for a session")
            .description(
                "The session is accepted as a Bearer token on /pro/api only, and ends with its token.",
            )
            .body(json!({
                "type": "object",
                "required": ["token"],
                "properties": {"token": {
                    "type": "string",
                    "description": "A Pro token (tm_pro_…).",
                    "examples": [format!("tm_pro_{:064x}", 0x1234_5678)],
                }},
            }))
            .json::<Session>(200, "A session, for 12 h.")
            .fails(&[code::INVALID_TOKEN, code::ACCOUNT_DISABLED, code::SESSION_EXPIRED]),
        create_session,
    )
}

/// A Pro session.
#[derive(Debug, Serialize, ToSchema)]
struct Session {
    token: String,
    expires_at: String,
}

async fn create_session(
    State(state): State<AppState>,
    // Counts by client: the token is not known yet.
    PublicCaller { client }: PublicCaller,
    mut body: JsonObject,
) -> Result<Json<Session>, ApiError> {
    let presented = body.text("token")?;
    let token = state.auth.find_pro_token(client, &presented).await?;
    state.store.acting(Actor::Token(token.id)).record_session(token.id, token.tenant).await?;
    let (session, expires_at) = state.auth.pro_sessions.issue(token.id, state.clock.now());
    Ok(Json(Session { token: session, expires_at: timestamp(expires_at) }))
}
