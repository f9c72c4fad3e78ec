//! `Content-Disposition` of downloads (RFC 6266, RFC 8187).

use axum::http::HeaderValue;

/// `attachment` with a file name: in plain ASCII for old clients, and in full where that differs.
pub(crate) fn attachment(file_name: &str) -> HeaderValue {
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
        assert_eq!(attachment("a b.txt"), "attachment; filename=\"a b.txt\"");
        assert_eq!(
            attachment("naïve.txt"),
            "attachment; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve.txt"
        );
        assert_eq!(
            attachment("../\"x\r\n"),
            "attachment; filename=\".._\u{5f}x__\"; filename*=UTF-8''.._%22x%0D%0A"
        );
    }
}
