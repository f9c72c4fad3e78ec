//! `/v1/sse/addr` and `/v1/sse/user`: streams of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::json;

use super::address::parse_query_address;
use crate::auth::StreamCaller;
use crate::http::connection::EndsWithInput;
use crate::http::error::{ApiError, V1Error, code};
use crate::openapi::{Credential, Operation, Routes};
use crate::realtime::scope::Scope;
use crate::realtime::sse::{self, StreamQuery};
use crate::state::AppState;

/// The routes of `/v1/sse`.
pub(super) fn routes() -> Routes<AppState> {
    let stream = |id, summary| sse::described(Operation::new(id, Credential::LiveInQuery, summary));
    Routes::new()
        .get(
            "/v1/sse/addr",
            stream("streamAddress", "Stream the mail to an address")
                .parameter(json!({"name": "address", "in": "query", "required": true,
                                  "description": "The exact address; a space stands for `+`.",
                                  "schema": {"type": "string", "pattern": "^.+@.+$"}}))
                .fails(&[code::NOT_FOUND]),
            stream_address,
        )
        .get(
            "/v1/sse/user",
            stream("streamOwned", "Stream the mail to everything the tenant owns"),
            stream_owned,
        )
}

pub(super) async fn stream_address(
    State(state): State<AppState>,
    _: EndsWithInput,
    StreamCaller(caller): StreamCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, V1Error> {
    let query = StreamQuery::parse(&uri)?;
    let address = query.address.as_deref().ok_or(ApiError::InvalidRequest("`address` is missing.".into()))?;
    let address = parse_query_address(state.config.address_syntax(), address)?;
    let scope = Scope::Address(Arc::new(address));
    let caller = scope.admit(caller)?;
    let since = query.start(&state, caller.tenant, &headers)?;
    Ok(sse::open(&state, caller.into(), scope, since).await?)
}

pub(super) async fn stream_owned(
    State(state): State<AppState>,
    _: EndsWithInput,
    StreamCaller(caller): StreamCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, V1Error> {
    let caller = Scope::Owned.admit(caller)?;
    let since = StreamQuery::parse(&uri)?.start(&state, caller.tenant, &headers)?;
    Ok(sse::open(&state, caller.into(), Scope::Owned, since).await?)
}
