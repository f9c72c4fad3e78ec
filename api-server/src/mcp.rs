//! `POST /mcp`: the Model Context Protocol. Each request is answered by itself, and its tools are requests of `/v1` in this
//! process, with the caller's token: what they may do and how often is decided there. It is no part of the interface that the
//! OpenAPI document describes.

mod in_process;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use tempmail_client::Client;
use tempmail_mcp::{Deletion, McpService};

use crate::auth::McpCaller;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, ErrorForm, MCP_PATHS};
use crate::http::json_body::receive_json;
use crate::http::own_origin;
use crate::state::AppState;
use in_process::InProcess;

/// The route of `/mcp`, whose tools send their requests to `tools`.
pub(crate) fn router(tools: Router) -> Router<AppState> {
    let transports = in_process::Transports::new(tools);
    let handler = move |State(state): State<AppState>, _: EndsWithInput, request: Request| {
        let transports = transports.clone();
        async move {
            let answered = answer(&state, &transports, request).await;
            answered.unwrap_or_else(|error| error.into_response_on(ErrorForm::Mcp))
        }
    };
    MCP_PATHS.into_iter().fold(Router::new(), |router, path| router.route(path, post(handler.clone())))
}

async fn answer(
    state: &AppState,
    transports: &in_process::Transports,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, body) = request.into_parts();
    // The host was checked by the middleware.
    if !own_origin::is_own(&state.config.http, &parts.headers) {
        return Err(ApiError::OriginNotAllowed);
    }
    let McpCaller(token) = McpCaller::from_request_parts(&mut parts, state).await?;
    let transport: InProcess = transports.for_request(&parts)?;
    let deletion = if state.config.mcp.allow_delete { Deletion::Allowed } else { Deletion::Forbidden };
    let service = McpService::new(Client::new(Arc::new(transport), token), deletion);
    let head = Parts::clone(&parts);
    let body = receive_json(Request::from_parts(parts, body), &state.config.http).await?;
    let mut request = Request::from_parts(head, body);
    // The SDK hands what it gets on to tools, which need nothing of it.
    *request.extensions_mut() = axum::http::Extensions::new();
    Ok(tempmail_mcp::answer(service, request).await.map(Body::new).into_response())
}
