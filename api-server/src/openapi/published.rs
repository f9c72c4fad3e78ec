//! `GET /openapi.json` and `GET /docs`.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::operation::{Credential, Operation};
use super::page;
use super::routes::Routes;
use crate::server::openapi_document;

/// Both may be kept for a minute.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// Where the document is.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .get(
            "/openapi.json",
            Operation::new("getDocument", Credential::None, "This document").constant().json_of(
                200,
                "The document; may be kept for 60 s.",
                json!({
                    "type": "object",
                    "description": "An OpenAPI 3.1 document.",
                    "required": ["openapi", "info", "paths", "components"],
                }),
            ),
            get_document,
        )
        .get(
            "/docs",
            Operation::new("getDocumentPage", Credential::None, "This document, to read").constant().binary(
                200,
                "text/html",
                "A page without scripts; may be kept for 60 s.",
            ),
            get_page,
        )
}

async fn get_document() -> impl IntoResponse {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi_document().to_string().into());
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json")), (CACHE_CONTROL, KEPT)];
    (headers, DOCUMENT.clone())
}

async fn get_page() -> impl IntoResponse {
    static PAGE: LazyLock<(Bytes, HeaderValue)> =
        LazyLock::new(|| (page::render(&openapi_document()).into(), policy()));
    let (html, policy) = &*PAGE;
    let headers: [(HeaderName, HeaderValue); 3] = [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CACHE_CONTROL, KEPT),
        (CONTENT_SECURITY_POLICY, policy.clone()),
    ];
    (headers, html.clone())
}

/// Nothing but the page's own style, known by its hash.
fn policy() -> HeaderValue {
    let style = STANDARD.encode(Sha256::digest(page::STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("a hash in base64 is ASCII")
}
