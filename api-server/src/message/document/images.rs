//! The images of a message that its HTML shows by their content id (RFC 2392), as `data:` URLs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempmail_mime::{Structure, TransferEncoding};

/// Media types that are shown. SVG is a document of its own, and is none of them.
const MEDIA_TYPES: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"];
/// Bytes of an encoded image that its type is looked for in.
const START_MAX: usize = 256;
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
            let start = leaf.encoding.decode(&encoded[..encoded.len().min(START_MAX)]);
            let Some(media_type) = media_type(&start, &leaf.media_type) else { continue };
            let size = leaf.encoding.decoded_len(encoded);
            if size > IMAGE_MAX || total + size > TOTAL_MAX || urls.contains_key(id) {
                continue;
            }
            total += size;
            let data = STANDARD.encode(leaf.encoding.decode(encoded));
            urls.insert(id.clone(), format!("data:{media_type};base64,{data}"));
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

/// A `data:` URL (RFC 2397) that is an image of a type that is shown, with that type.
pub(super) fn image_data(url: &str) -> Option<String> {
    let (head, data) = url.trim().get(5..)?.split_once(',')?;
    let (declared, parameters) = head.split_once(';').unwrap_or((head, ""));
    let is_base64 =
        parameters.rsplit(';').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    let start = data.as_bytes().get(..START_MAX).unwrap_or(data.as_bytes());
    let start = if is_base64 { TransferEncoding::Base64.decode(start) } else { Cow::Borrowed(start) };
    let media_type = media_type(&start, &declared.trim().to_ascii_lowercase())?;
    Some(format!("data:{media_type}{}{parameters},{data}", if parameters.is_empty() { "" } else { ";" }))
}

/// The type of an image that is shown: by its first octets (MIME Sniffing Standard 6.1), whatever its label says. Where
/// they say nothing, the label does.
fn media_type(start: &[u8], label: &str) -> Option<&'static str> {
    let is_avif = |brands: &[u8]| brands.chunks(4).any(|brand| matches!(brand, b"avif" | b"avis"));
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [_, _, _, _, b'f', b't', b'y', b'p', brands @ ..] if is_avif(&brands[..brands.len().min(32)]) => {
            Some("image/avif")
        }
        [b'B', b'M', ..] => Some("image/bmp"),
        _ => MEDIA_TYPES.into_iter().find(|known| *known == label),
    }
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
    fn knows_images_by_their_first_octets() {
        for (label, body, shown) in [
            ("image/jpg; name=logo.jpg", "/9j/4AAQSkZJRg==", Some("data:image/jpeg;base64,/9j/4AAQSkZJRg==")),
            ("image/pjpeg", "/9j/4AAQSkZJRg==", Some("data:image/jpeg;base64,/9j/4AAQSkZJRg==")),
            ("image/x-png", "iVBORw0KGgo=", Some("data:image/png;base64,iVBORw0KGgo=")),
            (
                "application/octet-stream; name=logo.png",
                "iVBORw0KGgo=",
                Some("data:image/png;base64,iVBORw0KGgo="),
            ),
            ("image/png", "R0lGODlhAQAB", Some("data:image/gif;base64,R0lGODlhAQAB")),
            ("image/unknown", "UklGRgAAAABXRUJQ", Some("data:image/webp;base64,UklGRgAAAABXRUJQ")),
            ("image/x-ms-bmp", "Qk0AAA==", Some("data:image/bmp;base64,Qk0AAA==")),
            (
                "image/heif",
                "AAAAHGZ0eXBtaWYxAAAAAG1pZjFhdmlm",
                Some("data:image/avif;base64,AAAAHGZ0eXBtaWYxAAAAAG1pZjFhdmlm"),
            ),
            ("image/jpg", "aGVsbG8=", None),
            ("image/svg+xml", "PHN2Zy8+", None),
            ("application/octet-stream", "PGh0bWw+", None),
        ] {
            let raw = format!(
                "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: {label}\r\nContent-ID: <a@b>\r\n\
                 Content-Transfer-Encoding: base64\r\n\r\n{body}\r\n--b--\r\n"
            );
            let images = InlineImages::of(&Structure::parse(raw.as_bytes()), raw.as_bytes(), "cid:");
            assert_eq!(images.find("cid:a@b"), shown, "{label}");
        }
    }

    #[test]
    fn knows_images_that_are_no_documents() {
        for (url, shown) in [
            ("data:image/png;base64,AA==", "data:image/png;base64,AA=="),
            ("DATA:Image/GIF,x", "data:image/gif,x"),
            (" data:image/jpg;base64,/9j/4AAQ", "data:image/jpeg;base64,/9j/4AAQ"),
            ("data:;charset=x;base64,iVBORw0KGgo=", "data:image/png;charset=x;base64,iVBORw0KGgo="),
        ] {
            assert_eq!(image_data(url).as_deref(), Some(shown), "{url}");
        }
        for other in
            ["data:image/svg+xml,<svg>", "data:text/html,x", "data:image/jpg,x", "data:,x", "data:", ""]
        {
            assert_eq!(image_data(other), None, "{other}");
        }
    }
}
