//! `/pro/api/session`: signs in to a dashboard, and out.

use axum::Json;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::json;
use tempmail_model::timestamp::timestamp;
use tempmail_store::{Actor, ApiToken};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::{ProCaller, SessionCookie, TenantCaller as _};
use crate::http::client::PublicCaller;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::own_origin;
use crate::http::rate_limit::enforce;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// The routes of `/pro/api/session`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new()
        .post(
            "/pro/api/session",
            Operation::new("createSession", Credential::None, "Exchange a Pro token for a session")
                .description(
                    "The session is accepted as a Bearer token on /pro/api only, and ends with its token. With `cookie` it is \
                     set as a cookie instead, which no script can read; that is for pages of the site itself.",
                )
                .body(json!({
                    "type": "object",
                    "required": ["token"],
                    "properties": {
                        "token": {
                            "type": "string",
                            "description": "A Pro token (tm_pro_…).",
                            "examples": [format!("tm_pro_{:064x}", 0x1234_5678)],
                        },
                        "cookie": {
                            "type": "boolean",
                            "default": false,
                            "description": "Whether to set a cookie.",
                            "examples": [false],
                        },
                    },
                }))
                .json::<Session>(200, "A session, for 12 h.")
                .empty(204, "The session is in a cookie, for 12 h.")
                .header("Set-Cookie", "The cookie.")
                .fails(&[
                    code::INVALID_TOKEN,
                    code::ACCOUNT_DISABLED,
                    code::SESSION_EXPIRED,
                    code::ORIGIN_NOT_ALLOWED,
                ]),
            create_session,
        )
        .get(
            "/pro/api/session",
            Operation::new("getSession", Credential::Pro, "Show who is signed in")
                .description("The cookie of a session that has ended is removed.")
                .json::<SignedInTenant>(200, "The tenant, and until when."),
            get_session,
        )
        .delete(
            "/pro/api/session",
            Operation::new("endSession", Credential::Pro, "Sign out")
                .description("Ends the session that is presented; a token that is presented itself stays valid.")
                .empty(204, "The session is ended: refused from now on, and its open streams end within 5 s.")
                .header("Set-Cookie", "Removes the cookie."),
            end_session,
        )
        .post(
            "/pro/api/session/link",
            Operation::new("signInByLink", Credential::None, "Sign in by the link that `up` prints")
                .description("For pages of the site itself. The link works once.")
                .body(json!({
                    "type": "object",
                    "required": ["code"],
                    "properties": {"code": {
                        "type": "string",
                        "description": "The code of the link.",
                        "examples": [format!("{:064x}", 0x1234_5678)],
                    }},
                }))
                .empty(204, "The session is in a cookie, for 12 h.")
                .header("Set-Cookie", "The cookie.")
                .fails(&[code::INVALID_TOKEN, code::ORIGIN_NOT_ALLOWED]),
            sign_in_by_link,
        )
}

/// A Pro session.
#[derive(Debug, Serialize, ToSchema)]
struct Session {
    token: String,
    expires_at: String,
}

/// The tenant that a token or session acts for.
#[derive(Debug, Serialize, ToSchema)]
struct SignedInTenant {
    tenant: Uuid,
    name: String,
    /// When the session, or the token, expires.
    expires_at: Option<String>,
}

async fn create_session(
    State(state): State<AppState>,
    // Counts by client: the token is not known yet.
    PublicCaller { client }: PublicCaller,
    headers: HeaderMap,
    mut body: JsonObject,
) -> Result<Response, ApiError> {
    let as_cookie = body.flag("cookie")?;
    let presented = body.text("token")?;
    if as_cookie && !own_origin::is_of_own_page(&state.config.http, &headers) {
        return Err(ApiError::OriginNotAllowed);
    }
    let token = state.auth.find_pro_token(client, &presented).await?;
    let session = begin(&state, &token).await?;
    if as_cookie { with_cookie(&state, &session) } else { Ok(Json(session).into_response()) }
}

async fn sign_in_by_link(
    State(state): State<AppState>,
    PublicCaller { client }: PublicCaller,
    headers: HeaderMap,
    mut body: JsonObject,
) -> Result<Response, ApiError> {
    let code = body.text("code")?;
    if !own_origin::is_of_own_page(&state.config.http, &headers) {
        return Err(ApiError::OriginNotAllowed);
    }
    let link = state.sign_in_link.take(&code).ok_or(ApiError::InvalidToken)?;
    let begun = match state.auth.find_pro_token(client, link.token()).await {
        Ok(token) => begin(&state, &token).await,
        Err(error) => Err(error),
    };
    match begun {
        Ok(session) => with_cookie(&state, &session),
        Err(error @ (ApiError::Unavailable | ApiError::Internal | ApiError::RateLimitExceeded { .. })) => {
            state.sign_in_link.put(link);
            Err(error)
        }
        // Whatever became of the token, the link leads nowhere.
        Err(_refused) => Err(ApiError::InvalidToken),
    }
}

/// Begins a session of a token, and counts it as a request of that.
///
/// # Errors
/// [`ApiError::RateLimitExceeded`]; the store failed.
async fn begin(state: &AppState, token: &ApiToken) -> Result<Session, ApiError> {
    enforce("token", state.limits.count_pro_token(token.id).await)?;
    state.limits.admit_change(token.tenant).await?;
    state.store.acting(Actor::Token(token.id)).record_session(token.id, token.tenant).await?;
    let (session, expires_at) = state.auth.pro_sessions.issue(token.id, state.clock.now());
    Ok(Session { token: session, expires_at: timestamp(expires_at) })
}

/// The answer that keeps a session in a cookie.
fn with_cookie(state: &AppState, session: &Session) -> Result<Response, ApiError> {
    let cookie = SessionCookie::of(&state.config.http).set(&session.token)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}

async fn get_session(
    State(state): State<AppState>,
    headers: HeaderMap,
    caller: Result<ProCaller, ApiError>,
) -> Result<Response, ApiError> {
    let caller = match caller {
        Ok(caller) => caller,
        // Where there is no `Authorization`, the session was in the cookie.
        Err(ended @ (ApiError::InvalidToken | ApiError::SessionExpired))
            if !headers.contains_key(AUTHORIZATION) =>
        {
            let cookie = SessionCookie::of(&state.config.http).remove()?;
            return Ok(([(SET_COOKIE, cookie)], ended).into_response());
        }
        Err(error) => return Err(error),
    };
    let tenant = state.store.find_tenant_by_id(caller.tenant, state.clock.now()).await?;
    // It was removed since the token was read.
    let tenant = tenant.ok_or(ApiError::InvalidToken)?;
    Ok(Json(SignedInTenant {
        tenant: tenant.id,
        name: tenant.name,
        expires_at: caller.expires_at.map(timestamp),
    })
    .into_response())
}

async fn end_session(State(state): State<AppState>, caller: ProCaller) -> Result<Response, ApiError> {
    // Sessions that a former version issued have no id, and end by themselves.
    if let Some(session) = caller.session.filter(|session| !session.id.is_nil()) {
        let store = state.store.acting(caller.actor());
        if store.end_session(session.id, session.token, caller.tenant).await? {
            state.limits.count_change(caller.tenant).await;
        }
    }
    let cookie = SessionCookie::of(&state.config.http).remove()?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
}
