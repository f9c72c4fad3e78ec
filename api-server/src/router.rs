//! Every route of the interface.

use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::response::Response;

use super::http::client::PublicCaller;
use super::http::error::{ErrorForm, code};
use super::http::middleware::{self, RequestPolicy};
use super::openapi::{self, Routes, document};
use super::realtime::websocket;
use super::state::AppState;
use super::{mailbox_api, mcp, page, pro_api, token_api};

/// The OpenAPI 3.1 document of every route.
pub fn openapi_document() -> serde_json::Value {
    document(&routes())
}

/// The same without webhooks, for generators of clients.
pub fn openapi_without_webhooks() -> serde_json::Value {
    openapi::without_webhooks(openapi_document())
}

/// The router of every route, behind the middleware.
pub(crate) fn router(state: AppState) -> Router {
    let page = if state.config.http.page { page::router() } else { Router::new() };
    let mut router = routes().into_router().merge(page);
    if state.config.mcp.enabled {
        // Tools are requests like any other: behind the same middleware, with their caller's token.
        let tools = behind_middleware(token_api::routes().into_router(), state.clone());
        router = router.merge(mcp::router(tools));
    }
    behind_middleware(router, state)
}

fn behind_middleware(router: Router<AppState>, state: AppState) -> Router {
    let policy = RequestPolicy::new(state.config.clone(), state.limits.clone());
    router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(policy, middleware::handle))
        .with_state(state)
}

fn routes() -> Routes<AppState> {
    Routes::new()
        .merge(mailbox_api::routes())
        .merge(websocket::routes())
        .merge(pro_api::routes())
        .merge(token_api::routes())
        .merge(openapi::routes(openapi_document))
}

async fn not_found(_: PublicCaller, uri: Uri) -> Response {
    ErrorForm::of_path(uri.path()).error_response(code::NOT_FOUND, "No route has this path.")
}

async fn method_not_allowed(_: PublicCaller, uri: Uri) -> Response {
    ErrorForm::of_path(uri.path())
        .error_response(code::METHOD_NOT_ALLOWED, "Use one of the methods that `Allow` lists.")
}
