//! `GET /openapi.json` and `GET /docs`.

use std::sync::OnceLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::html;
use super::operation::{Credential, Operation, Routes, query};
use crate::http::client::PublicCaller;
use crate::http::parameter::unique_query_parameters;
use crate::http::rate_limit::RequestLimits;

/// Both answers may be cached for a minute.
const CACHEABLE: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// The routes of the document that `document` builds from all routes, these included.
pub(crate) fn routes<S>(document: fn() -> Value) -> Routes<S>
where
    S: AsRef<RequestLimits> + Clone + Send + Sync + 'static,
{
    Routes::new()
        .get(
            "/openapi.json",
            Operation::new("getDocument", Credential::None, "This document")
                .constant()
                .parameter(query(
                    "webhooks",
                    "`false`: without `webhooks`, for generators of clients, which make operations of them.",
                    json!({"type": "boolean", "default": true}),
                ))
                .json_of(
                    200,
                    "The document; may be cached for 60 s.",
                    json!({
                        "type": "object",
                        "description": "An OpenAPI 3.1 document.",
                        "required": ["openapi", "info", "paths", "components"],
                    }),
                ),
            move |_: PublicCaller, uri: Uri| get_document(document, uri),
        )
        .get(
            "/docs",
            Operation::new("getDocumentPage", Credential::None, "This document as a page").constant().binary(
                200,
                "text/html",
                "A page without scripts; may be cached for 60 s.",
            ),
            move |_: PublicCaller| get_page(document),
        )
}

async fn get_document(document: fn() -> Value, uri: Uri) -> impl IntoResponse {
    static WHOLE: OnceLock<Bytes> = OnceLock::new();
    static WITHOUT_WEBHOOKS: OnceLock<Bytes> = OnceLock::new();
    let json = match unique_query_parameters(&uri, ["webhooks"]) {
        Some([Some(webhooks)]) if webhooks == "false" => {
            WITHOUT_WEBHOOKS.get_or_init(|| without_webhooks(document()).to_string().into())
        }
        _ => WHOLE.get_or_init(|| document().to_string().into()),
    };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json")), (CACHE_CONTROL, CACHEABLE)];
    (headers, json.clone())
}

/// The document for generators of clients.
pub(crate) fn without_webhooks(mut document: Value) -> Value {
    document.as_object_mut().map(|fields| fields.remove("webhooks"));
    document
}

async fn get_page(document: fn() -> Value) -> impl IntoResponse {
    static PAGE: OnceLock<(Bytes, HeaderValue)> = OnceLock::new();
    let (page, policy) = PAGE.get_or_init(|| (html::render(&document()).into(), content_security_policy()));
    let headers: [(HeaderName, HeaderValue); 3] = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, CACHEABLE),
        (CONTENT_SECURITY_POLICY, policy.clone()),
    ];
    (headers, page.clone())
}

/// Allows the page's own style, by its hash, and nothing else.
fn content_security_policy() -> HeaderValue {
    let style = STANDARD.encode(Sha256::digest(html::STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("a hash in base64 is ASCII")
}
