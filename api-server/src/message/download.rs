//! Raw data and attachments as downloads, under the file name of their `Content-Disposition` (RFC 6266, RFC 8187).

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tempmail_mime::{Attachment, TransferDecoder};

use super::budget::RenderMemory;
use super::raw::{RawError, RawReader};

/// A response that browsers save to a file and never render.
pub(super) fn download(body: Body, length: usize, content_type: &str, file_name: &str) -> Response {
    let content_type = HeaderValue::try_from(content_type)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CONTENT_DISPOSITION, disposition(file_name));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

/// A whole attachment, from its encoded body.
pub(super) fn decode(attachment: &Attachment, body: &[u8]) -> Vec<u8> {
    let mut decoder = TransferDecoder::new(attachment.leaf.encoding);
    let mut decoded = Vec::with_capacity(attachment.size);
    decoder.push(body, &mut decoded);
    decoder.finish(&mut decoded);
    decoded
}

/// An attachment, decoded while it is written.
pub(super) fn decoding_body(reader: RawReader, attachment: &Attachment, memory: RenderMemory) -> Body {
    let decoder = TransferDecoder::new(attachment.leaf.encoding);
    let decoding = (reader, 0_usize, attachment.leaf.body.clone(), decoder, memory);
    let chunks = stream::try_unfold(Some(decoding), |decoding| async move {
        let Some((mut reader, mut position, body, mut decoder, memory)) = decoding else { return Ok(None) };
        let mut decoded = Vec::new();
        while decoded.is_empty() {
            match reader.next().await? {
                Some(chunk) if position < body.end => {
                    let from = body.start.saturating_sub(position).min(chunk.len());
                    let to = (body.end - position).min(chunk.len());
                    position += chunk.len();
                    decoder.push(&chunk[from..to], &mut decoded);
                }
                _ => {
                    decoder.finish(&mut decoded);
                    return Ok::<_, RawError>(Some((Bytes::from(decoded), None)));
                }
            }
        }
        Ok(Some((Bytes::from(decoded), Some((reader, position, body, decoder, memory)))))
    });
    Body::from_stream(chunks)
}

/// `attachment` with a file name: in plain ASCII for old clients, and in full where that differs.
pub(crate) fn disposition(file_name: &str) -> HeaderValue {
    // File names have no folders; some clients misread quotes and percent signs.
    let plain: String = file_name
        .chars()
        .map(|c| match c {
            '/' | '\\' | '"' | '%' | ':' => '_',
            ' '..='~' => c,
            _ => '_',
        })
        .collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != file_name {
        value.push_str("; filename*=UTF-8''");
        for byte in file_name.replace(['/', '\\'], "_").bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                value.push(char::from(byte));
            } else {
                value.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_file_names() {
        assert_eq!(disposition("a b.txt"), "attachment; filename=\"a b.txt\"");
        assert_eq!(
            disposition("naïve.txt"),
            "attachment; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve.txt"
        );
        assert_eq!(
            disposition("../\"x\r\n"),
            "attachment; filename=\".._\u{5f}x__\"; filename*=UTF-8''.._%22x%0D%0A"
        );
    }
}
