//! The images of a message that its HTML shows by their content id (RFC 2392), as `data:` URLs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempmail_mime::Structure;

/// Media types that are shown. SVG is a document of its own, and is none of them.
const MEDIA_TYPES: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"];
/// Bytes of an image.
const IMAGE_MAX: usize = 4 << 20;
/// Bytes of all images, however often each is shown.
const TOTAL_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct InlineImages {
    /// By content id.
    urls: HashMap<String, String>,
    /// Bytes that may still be shown.
    left: AtomicUsize,
}

impl InlineImages {
    /// The images that `html` may name, of a message with this structure.
    pub(super) fn of(structure: &Structure, raw: &[u8], html: &str) -> Self {
        let mut urls = HashMap::new();
        let mut total = 0;
        if !html.contains("cid:") && !html.to_ascii_lowercase().contains("cid:") {
            return Self { urls, left: AtomicUsize::new(TOTAL_MAX) };
        }
        for leaf in &structure.leaves {
            let Some(id) = &leaf.content_id else { continue };
            let encoded = &raw[leaf.body.clone()];
            let size = leaf.encoding.decoded_len(encoded);
            let is_shown = MEDIA_TYPES.contains(&leaf.media_type.as_str()) && size <= IMAGE_MAX;
            if !is_shown || total + size > TOTAL_MAX || urls.contains_key(id) {
                continue;
            }
            total += size;
            let data = STANDARD.encode(leaf.encoding.decode(encoded));
            urls.insert(id.clone(), format!("data:{};base64,{data}", leaf.media_type));
        }
        Self { urls, left: AtomicUsize::new(TOTAL_MAX) }
    }

    /// The `data:` URL for a URL `cid:…`, unless too much is shown already.
    pub(super) fn find(&self, url: &str) -> Option<&str> {
        let (scheme, id) = url.trim().split_once(':')?;
        if !scheme.eq_ignore_ascii_case("cid") {
            return None;
        }
        let found = self.urls.get(id).or_else(|| self.urls.get(&percent_decoded(id)?))?;
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(found.len()));
        taken.is_ok().then_some(found.as_str())
    }
}

/// Whether a URL is an image in itself, of a type that is shown.
pub(super) fn is_image_data(url: &str) -> bool {
    let Some(rest) = url.trim().get(5..) else { return false };
    let media_type = rest.split([';', ',']).next().unwrap_or_default();
    MEDIA_TYPES.iter().any(|known| known.eq_ignore_ascii_case(media_type))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after.first_chunk::<2>()) {
            (b'%', Some(digits)) => {
                decoded.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                &after[2..]
            }
            _ => {
                decoded.push(*first);
                after
            }
        };
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &[u8] =
        b"Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n\
        <img src=\"cid:a%40b\">\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <a@b>\r\n\
        Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b\r\nContent-Type: image/svg+xml\r\n\
        Content-ID: <svg>\r\n\r\n<svg/>\r\n--b--\r\n";

    #[test]
    fn finds_images_by_their_content_id() {
        let images = InlineImages::of(&Structure::parse(RAW), RAW, "cid:");
        let expected = Some("data:image/png;base64,aGVsbG8=");
        assert_eq!(images.find("cid:a@b"), expected);
        assert_eq!(images.find(" CID:a%40b"), expected);
        for other in ["cid:a", "a@b", "cid:svg", "http:a@b", "cid:%zz", ""] {
            assert_eq!(images.find(other), None, "{other}");
        }
    }

    #[test]
    fn bounds_what_is_shown_however_often_an_image_is_named() {
        let images = InlineImages {
            left: AtomicUsize::new(70),
            ..InlineImages::of(&Structure::parse(RAW), RAW, "cid:")
        };
        assert!(images.find("cid:a@b").is_some() && images.find("cid:a@b").is_some());
        assert!(images.find("cid:a@b").is_none());
    }

    #[test]
    fn knows_images_that_are_no_documents() {
        assert!(is_image_data("data:image/png;base64,AA==") && is_image_data("DATA:Image/GIF,x"));
        for other in ["data:image/svg+xml,<svg>", "data:text/html,x", "data:,x", "data:", ""] {
            assert!(!is_image_data(other), "{other}");
        }
    }
}
