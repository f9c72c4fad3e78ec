//! `POST /pro/api/session`: what the dashboard signs in with.

use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::auth::find_pro_token;
use crate::client::Client;
use crate::error::{ApiError, code};
use crate::json_body::JsonObject;
use crate::limit::RateReport;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;
use tempmail_model::timestamp::timestamp;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new().post(
        "/pro/api/session",
        Operation::new("createSession", Credential::None, "Exchange a Pro token for a session")
            .description("The session is accepted as Bearer on /pro/api only; it ends with its token.")
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
    Extension(client): Extension<Client>,
    Extension(report): Extension<RateReport>,
    mut body: JsonObject,
) -> Result<Json<Session>, ApiError> {
    // There is no token yet to count by.
    if let Some(decision) = state.limits.of_client(client).await {
        report.set("client", decision);
        if !decision.allowed {
            return Err(ApiError::RateLimitExceeded { retry_after: decision.retry_after });
        }
    }
    let presented = body.text("token")?;
    let token = find_pro_token(&presented, &state).await?;
    let (session, expires_at) = state.pro_sessions.make(token.id, state.clock.now());
    Ok(Json(Session { token: session, expires_at: timestamp(expires_at) }))
}
