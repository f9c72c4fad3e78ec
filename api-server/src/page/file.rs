//! The files of the page, with what is computed of them once.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::LazyLock;

use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;
use sha2::{Digest as _, Sha256};

/// The files of `api-server/page`, in the binary.
#[derive(RustEmbed)]
#[folder = "page/"]
struct EmbeddedPage;

/// A file as it is served.
pub(super) struct PageFile {
    pub(super) media_type: &'static str,
    /// Whether a browser shows it by itself, and runs what is in it.
    pub(super) is_document: bool,
    pub(super) plain: Representation,
    /// With gzip; `None` where that is not smaller.
    pub(super) compressed: Option<Representation>,
}

/// The bytes of a file in one encoding.
pub(super) struct Representation {
    pub(super) bytes: Bytes,
    /// A strong tag.
    pub(super) etag: HeaderValue,
}

impl PageFile {
    /// The file at a path below the folder, which has `/` between its parts.
    pub(super) fn find(path: &str) -> Option<&'static Self> {
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
