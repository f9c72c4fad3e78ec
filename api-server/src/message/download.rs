//! Raw data and attachments as downloads.

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
use super::disposition;
use super::raw::{RawError, RawReader};

/// A response that browsers save to a file and never render.
pub(super) fn download(body: Body, length: usize, content_type: &str, file_name: &str) -> Response {
    let content_type = HeaderValue::try_from(content_type)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CONTENT_DISPOSITION, disposition::attachment(file_name));
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
