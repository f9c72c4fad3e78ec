//! The web page: files in the binary, below `/page`, and the two documents `/` and `/dashboard`. Switched off by
//! `http.page`. It is no part of the interface that the OpenAPI document describes.

mod file;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;

use crate::http::error::ApiError;
use crate::state::AppState;
use file::PageFile;

/// What the page may load, run and connect to: its own files and requests, frames with mail, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Everything but copying to the clipboard is off, for the page and its frames.
const PERMISSIONS: &str = "clipboard-write=(self), accelerometer=(), autoplay=(), bluetooth=(), browsing-topics=(), \
    camera=(), clipboard-read=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), \
    hid=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), payment=(), \
    picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=(), \
    web-share=(), window-management=(), xr-spatial-tracking=()";

/// Header fields of every file.
const OF_ALL: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-cache"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Those of what a browser shows by itself. Scripts and styles are under the policy of their document: with these fields
/// sixty files would weigh twice as much.
const OF_DOCUMENTS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), PERMISSIONS),
];

/// The routes of the page. Requests of its files are not counted: there are many of them at once, and each is a copy of
/// bytes in memory.
pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { answer("index.html", &headers) }))
        .route("/dashboard", get(|headers: HeaderMap| async move { answer("dashboard.html", &headers) }))
        .route("/page/{*path}", get(get_file))
}

async fn get_file(
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Path(path) = path.map_err(|_not_utf8| ApiError::NotFound)?;
    // The two documents have one address each.
    if path.ends_with(".html") { Err(ApiError::NotFound) } else { answer(&path, &headers) }
}

/// The answer to a request for a file.
///
/// # Errors
/// [`ApiError::NotFound`]: there is no such file.
fn answer(path: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let file = PageFile::find(path).ok_or(ApiError::NotFound)?;
    let compressed = file.compressed.as_ref().filter(|_| accepts_gzip(headers));
    let representation = compressed.unwrap_or(&file.plain);
    let is_known = knows(headers, &representation.etag);
    let mut response =
        Response::new(if is_known { Body::empty() } else { Body::from(representation.bytes.clone()) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fields = response.headers_mut();
    if !is_known {
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
        if compressed.is_some() {
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    fields.insert(ETAG, representation.etag.clone());
    fields.append(VARY, HeaderValue::from_static("accept-encoding"));
    insert(fields, OF_ALL);
    if file.is_document {
        insert(fields, OF_DOCUMENTS);
    }
    Ok(response)
}

fn insert(fields: &mut HeaderMap, added: impl IntoIterator<Item = (HeaderName, &'static str)>) {
    for (name, value) in added {
        fields.insert(name, HeaderValue::from_static(value));
    }
}

/// Whether a client takes gzip (RFC 9110 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter();
    codings.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Whether a client has the file with this tag (RFC 9110 13.1.2).
fn knows(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == etag.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn compresses_for_those_who_take_gzip() {
        for (value, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("deflate", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&with(ACCEPT_ENCODING, value)), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn compares_tags_weakly() {
        let etag = HeaderValue::from_static("\"a\"");
        for (value, expected) in
            [("\"a\"", true), ("\"b\", W/\"a\"", true), ("*", true), ("\"b\"", false), ("a", false)]
        {
            assert_eq!(knows(&with(IF_NONE_MATCH, value), &etag), expected, "{value}");
        }
    }
}
