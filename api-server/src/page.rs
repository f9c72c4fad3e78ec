//! The web page: files in the binary, below `/page`, and the two documents `/` and `/dashboard`. Switched off by
//! `http.page`. It is no part of the interface that the OpenAPI document describes.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::LazyLock;

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
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;
use sha2::{Digest as _, Sha256};

use super::http::error::ApiError;
use super::state::AppState;

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

/// The files of `api-server/page`, in the binary.
#[derive(RustEmbed)]
#[folder = "page/"]
struct EmbeddedPage;

/// A file as it is served.
struct PageFile {
    media_type: &'static str,
    /// Whether a browser shows it by itself, and runs what is in it.
    is_document: bool,
    plain: Representation,
    /// With gzip; `None` where that is not smaller.
    compressed: Option<Representation>,
}

/// The bytes of a file in one encoding.
struct Representation {
    bytes: Bytes,
    /// A strong tag.
    etag: HeaderValue,
}

impl PageFile {
    /// The file at a path below the folder, which has `/` between its parts.
    fn find(path: &str) -> Option<&'static Self> {
        static FILES: LazyLock<HashMap<String, PageFile>> = LazyLock::new(|| {
            let paths = EmbeddedPage::iter();
            paths.filter_map(|path| Some((path.to_string(), PageFile::read(&path)?))).collect()
        });
        FILES.get(path)
    }

    fn read(path: &str) -> Option<Self> {
        let data = EmbeddedPage::get(path)?.data.into_owned();
        let hash: String = Sha256::digest(&data)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let compressed = compress(&data).filter(|compressed| compressed.len() < data.len());
        let media_type = media_type(path);
        Some(Self {
            media_type,
            is_document: media_type.starts_with("text/html") || media_type == "image/svg+xml",
            plain: Representation::new(data, &format!("\"{hash}\"")),
            compressed: compressed.map(|bytes| Representation::new(bytes, &format!("\"{hash}-gzip\""))),
        })
    }
}

impl Representation {
    fn new(bytes: Vec<u8>, etag: &str) -> Self {
        let etag = HeaderValue::try_from(etag).expect("a hash in hexadecimal is ASCII");
        Self { bytes: bytes.into(), etag }
    }
}

fn compress(data: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    encoder.write_all(data).ok()?;
    encoder.finish().ok()
}

/// The media type of a file, by its extension.
fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
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

    #[test]
    fn knows_the_media_type_of_every_file() {
        for path in EmbeddedPage::iter() {
            assert_ne!(media_type(&path), "application/octet-stream", "{path}");
        }
    }

    #[test]
    fn has_both_documents_and_their_style() {
        for path in ["index.html", "dashboard.html", "page.css"] {
            let file = PageFile::find(path).unwrap_or_else(|| panic!("{path}"));
            assert!(!file.plain.bytes.is_empty(), "{path}");
        }
        assert!(PageFile::find("../Cargo.toml").is_none());
    }
}
