//! Fields with parameters: `Content-Type`, `Content-Disposition` (RFC 2045 5.1, RFC 2231).

use super::unfolded;
use crate::text;
use crate::transfer::hex;

/// Maximum octets of a field that are parsed.
const FIELD_MAX: usize = 4096;

/// Parameters that begin also where no `;` is before them.
const KNOWN: [&str; 8] = ["boundary", "charset", "delsp", "filename", "format", "name", "start", "type"];

/// The value of a field and its parameters.
pub(crate) struct Parameters {
    /// The text before the first parameter.
    pub(crate) value: String,
    list: Vec<Parameter>,
}

struct Parameter {
    /// In lower case, without the suffix of RFC 2231.
    name: String,
    /// Its number among the sections of a value (RFC 2231 3).
    section: Option<u32>,
    /// Whether the value has a charset and is percent-encoded (RFC 2231 4).
    extended: bool,
    value: String,
}

impl Parameters {
    pub(crate) fn parse(value: &[u8]) -> Self {
        let text = unfolded(value);
        let mut rest = &text[..text.floor_char_boundary(FIELD_MAX)];
        let value = next_value(&mut rest);
        let mut list = Vec::new();
        while !rest.is_empty() {
            // Some software writes `charset: utf-8`.
            let (name, has_value) = match rest.find(['=', ':', ';']) {
                Some(end) => (&rest[..end], rest.as_bytes()[end] != b';'),
                None => (rest, false),
            };
            rest = rest.get(name.len() + 1..).unwrap_or("");
            if has_value {
                list.push(Parameter::new(name.trim(), next_value(&mut rest)));
            }
        }
        Self { value: value.split('(').next().unwrap_or("").trim().to_owned(), list }
    }

    /// The value of a parameter, `name` in lower case. The form with a charset is preferred.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let named = || self.list.iter().filter(|parameter| parameter.name == name);
        if let Some(whole) = named().find(|parameter| parameter.extended && parameter.section.is_none()) {
            return Some(joined(&[whole]));
        }
        let mut sections: Vec<_> = named().filter(|parameter| parameter.section.is_some()).collect();
        sections.sort_by_key(|parameter| parameter.section);
        let unbroken =
            (0..).zip(&sections).take_while(|(i, parameter)| parameter.section == Some(*i)).count();
        if unbroken > 0 {
            return Some(joined(&sections[..unbroken]));
        }
        named().find(|parameter| parameter.section.is_none()).map(|parameter| parameter.value.clone())
    }
}

impl Parameter {
    fn new(name: &str, value: String) -> Self {
        let (name, suffix) = name.split_once('*').map_or((name, None), |(name, suffix)| (name, Some(suffix)));
        let section = suffix.and_then(|suffix| suffix.trim_end_matches('*').parse().ok());
        let extended = suffix.is_some_and(|suffix| suffix.is_empty() || suffix.ends_with('*'));
        Self { name: name.trim_end().to_ascii_lowercase(), section, extended, value }
    }
}

/// Removes a value and the `;` after it from the text. Quotes may be anywhere in it. A known parameter ends it also
/// after white space, a comma, a colon or a closing quote.
fn next_value(rest: &mut &str) -> String {
    let mut value = String::new();
    if begins_parameter(rest.as_bytes()) {
        return value;
    }
    let (mut kept, mut had_quotes, mut quoted, mut end) = (0, false, false, rest.len());
    let last_quote = rest.rfind('"');
    let mut characters = rest.char_indices();
    while let Some((i, c)) = characters.next() {
        let after = &rest[i + c.len_utf8()..];
        match c {
            '"' => {
                (quoted, had_quotes) = (!quoted, true);
                if !quoted && begins_parameter(after.as_bytes()) {
                    end = i + 1;
                    kept = value.len();
                    break;
                }
            }
            '\\' if quoted => value.extend(characters.next().map(|(_, escaped)| escaped)),
            // A quote that is never closed does not hide the parameters after it.
            ';' if !quoted || (last_quote < Some(i) && begins_parameter(after.as_bytes())) => {
                end = i + 1;
                break;
            }
            // Looked for once a run of white space, whatever its length.
            _ if !quoted
                && (matches!(c, ',' | ':')
                    || (c.is_whitespace() && !after.starts_with(char::is_whitespace)))
                && begins_parameter(after.as_bytes()) =>
            {
                end = i + c.len_utf8();
                break;
            }
            // Unquoted white space counts only between other characters.
            _ if !quoted && c.is_whitespace() => {
                if !value.is_empty() {
                    value.push(c);
                }
                continue;
            }
            _ => value.push(c),
        }
        kept = value.len();
    }
    value.truncate(kept);
    // A comment after the value. Other parentheses belong to a file name that lacks quotes.
    if !had_quotes
        && value.ends_with(')')
        && let Some(comment) = value.find(" (")
    {
        value.truncate(comment);
    }
    *rest = &rest[end..];
    value
}

/// Whether a text begins with a known parameter: its name, maybe the suffix of RFC 2231, and `=`.
pub(super) fn begins_parameter(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let name = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_known = KNOWN.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(&text[..name]));
    is_known && {
        let suffix = text[name..].iter().take_while(|byte| **byte == b'*' || byte.is_ascii_digit()).count();
        text[name + suffix..].trim_ascii_start().starts_with(b"=")
    }
}

/// Joins the sections of a value, of which the first has the charset (RFC 2231 4.1).
fn joined(sections: &[&Parameter]) -> String {
    let mut octets = Vec::new();
    let mut charset = None;
    for (i, section) in sections.iter().enumerate() {
        let mut value = section.value.as_str();
        if !section.extended {
            octets.extend_from_slice(value.as_bytes());
            continue;
        }
        if i == 0 {
            let mut pieces = value.splitn(3, '\'');
            if let (Some(named), Some(_language), Some(encoded)) =
                (pieces.next(), pieces.next(), pieces.next())
            {
                (charset, value) = (Some(named), encoded);
            }
        }
        percent_decode(value.as_bytes(), &mut octets);
    }
    text::decoded(&octets, charset).into_owned()
}

fn percent_decode(mut encoded: &[u8], octets: &mut Vec<u8>) {
    while let [first, after @ ..] = encoded {
        encoded = after;
        match (first, after) {
            (b'%', [high, low, rest @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                octets.extend(hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low));
                encoded = rest;
            }
            _ => octets.push(*first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_values_and_parameters() {
        let parsed = Parameters::parse(b" text/plain (really) ; Charset = utf-8 (yes); format=flowed; x");
        assert_eq!(parsed.value, "text/plain");
        assert_eq!(parsed.get("charset").as_deref(), Some("utf-8"));
        assert_eq!(parsed.get("format").as_deref(), Some("flowed"));
        assert_eq!(parsed.get("x"), None);
        let colon = Parameters::parse(b"text/html; charset: koi8-r");
        assert_eq!(colon.get("charset").as_deref(), Some("koi8-r"));
        let garbage = Parameters::parse(b";;;=/garbage; charset");
        assert_eq!((garbage.value.as_str(), garbage.get("charset")), ("", None));
    }

    #[test]
    fn finds_parameters_without_the_semicolon_before_them() {
        for field in [
            "multipart/mixed boundary=b1 charset=utf-8",
            "multipart/mixed, boundary=b1, charset=utf-8",
            "multipart/mixed:boundary=b1:charset=utf-8",
            "multipart/mixed boundary=\"b1\" charset=\"utf-8\"",
            "multipart/mixed; boundary=\"b1\"charset=utf-8",
            "multipart/mixed; charset=\"utf-8; boundary=b1",
            "multipart/mixed; x=1 BOUNDARY = b1,charset*=us-ascii''utf-8",
        ] {
            let parsed = Parameters::parse(field.as_bytes());
            assert!(parsed.value.starts_with("multipart/mixed"), "{field}");
            assert_eq!(parsed.get("boundary").as_deref(), Some("b1"), "{field}");
            assert_eq!(parsed.get("charset").as_deref(), Some("utf-8"), "{field}");
        }
        let nameless = Parameters::parse(b" filename=a.pdf");
        assert_eq!((nameless.value.as_str(), nameless.get("filename").as_deref()), ("", Some("a.pdf")));
        let quoted = Parameters::parse(b"attachment; filename=\"a, name=b; type=c.txt\"");
        assert_eq!(quoted.get("filename").as_deref(), Some("a, name=b; type=c.txt"));
    }

    #[test]
    fn decodes_file_names_of_rfc_2231() {
        let file_name = |value: &str| Parameters::parse(value.as_bytes()).get("filename").unwrap();
        for (value, expected) in [
            ("attachment; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("attachment; filename*0=\"a\";\r\n filename*1=\"b.txt\"", "ab.txt"),
            ("attachment; filename*1*=%20b; filename*0*=iso-8859-1'de'%E9; filename*3=no", "é b"),
            ("attachment; filename*0*=utf-8''%e2%82%ac; filename*1=\" 100% \"; filename*2*=%21", "€ 100% !"),
            ("attachment; filename=old; filename*=utf-8''new", "new"),
            ("attachment; filename=\"x y.txt\"", "x y.txt"),
            ("attachment; filename=\"say \\\"hi\\\"; ok.txt\"", "say \"hi\"; ok.txt"),
            ("attachment; filename=x (1).txt ; a=b", "x (1).txt"),
            ("attachment; filename=x (a comment)", "x"),
            ("attachment; filename==?utf-8?q?a=07?=", "=?utf-8?q?a=07?="),
            ("attachment; filename*=no quotes%2", "no quotes%2"),
            ("attachment; filename=\"never closed; a=b", "never closed; a=b"),
        ] {
            assert_eq!(file_name(value), expected, "{value}");
        }
    }
}
