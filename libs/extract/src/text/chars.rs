//! One form for characters that look alike (digits of all scripts, widths, dashes, spaces, and what is not seen), and
//! the form of text in which words are looked up: lower case, without accents, and with one space between words.

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use unicode_normalization::char::decompose_compatible;

use super::url_scan::is_of_url;

/// The zeros of Unicode's decimal digits; nine more digits follow each.
const ZEROS: &[u32] = &[
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0,
    0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x11066,
    0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x16A60,
    0x16B50, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// A sign of a currency.
pub(crate) fn is_currency(c: char) -> bool {
    matches!(c, '$' | '¢'..='¥' | '\u{20A0}'..='\u{20CF}' | '฿' | '৳' | '﷼')
}

/// The form of a character, or nothing for what is not seen: what is default-ignorable in Unicode, and keycaps.
pub(crate) fn normal(c: char) -> Option<char> {
    if c.is_ascii() {
        return if c.is_ascii_control() && !matches!(c, '\n' | '\t') { Some(' ') } else { Some(c) };
    }
    match c {
        '\u{AD}' | '\u{20E3}' => None,
        '\u{80}'..='\u{A0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200A}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202F}'
        | '\u{205F}'
        | '\u{3000}'
        | '\u{2800}'
        | '\u{3164}' => Some(' '),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}' => Some('-'),
        // A comma between clauses, which must not look as if it were in a number.
        '\u{FF0C}' => Some(c),
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0),
        '\u{1D400}'..='\u{1D7FF}' => {
            let mut first = None;
            decompose_compatible(c, |to| first = first.or(Some(to)));
            first
        }
        c if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) => None,
        _ => Some(digit(c).unwrap_or(c)),
    }
}

/// Puts the characters of a text into that form, one after the other.
///
/// No character outside ASCII is part of an address (RFC 3986 2). One whose form could be, or that is not seen, is
/// parted from the address before it by a space.
#[derive(Debug, Default)]
pub(crate) struct Normalizer {
    /// Characters of `://` before the next one.
    matched: u8,
    /// Whether the next character may be part of an address.
    in_address: bool,
}

impl Normalizer {
    /// The space before the next character, if there is one, and its form.
    pub(crate) fn next(&mut self, c: char) -> [Option<char>; 2] {
        let form = normal(c);
        let parts = self.in_address && !c.is_ascii() && form.is_none_or(is_of_url);
        self.in_address &= !parts && form.is_some_and(is_of_url);
        self.matched = match (self.matched, form) {
            (_, Some(':')) => 1,
            (1, Some('/')) => 2,
            (matched, form) => {
                self.in_address |= matched == 2 && form == Some('/');
                0
            }
        };
        [parts.then_some(' '), form]
    }
}

/// The ASCII digit of a decimal digit of another script.
fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let after = ZEROS.partition_point(|zero| *zero <= code);
    let value = code - ZEROS[after.checked_sub(1)?];
    if value < 10 { char::from_digit(value, 10) } else { None }
}

/// The text in that form.
pub(crate) fn normalized(text: &str) -> String {
    let mut form = String::with_capacity(text.len());
    let mut normalizer = Normalizer::default();
    form.extend(text.chars().flat_map(|c| normalizer.next(c)).flatten());
    form
}

/// Folded text, and where each of its octets comes from.
pub(crate) struct Folded {
    pub(crate) text: String,
    /// For each octet of `text`, and for its end, the place in what was folded.
    pub(crate) origin: Vec<u32>,
}

/// Folds text. Lines, hyphens and underscores are spaces, since words are broken and joined by them.
pub(crate) fn fold(text: &str) -> Folded {
    let mut folded =
        Folded { text: String::with_capacity(text.len()), origin: Vec::with_capacity(text.len() + 1) };
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | '0'..='9' => folded.push(c, at),
            'A'..='Z' => folded.push(c.to_ascii_lowercase(), at),
            '-' | '_' | '/' | '\u{5BE}' => folded.push_space(at),
            '\u{2019}' | '\u{2018}' | '\u{2BC}' | '`' | '\u{B4}' => folded.push('\'', at),
            c if c.is_whitespace() => folded.push_space(at),
            c if c.is_ascii() => folded.push(c, at),
            c => c
                .to_lowercase()
                .for_each(|lower| decompose_compatible(lower, |part| folded.push_part(part, at))),
        }
    }
    folded.origin.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
    folded
}

impl Folded {
    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.origin.push(at);
        if !c.is_ascii() {
            self.origin.resize(self.text.len(), at);
        }
    }

    fn push_space(&mut self, at: usize) {
        if self.text.as_bytes().last() != Some(&b' ') {
            self.push(' ', at);
        }
    }

    /// A letter after decomposition; marks are left out, and letters that do not decompose are replaced.
    fn push_part(&mut self, part: char, at: usize) {
        match part {
            // Accents, Hebrew points, Arabic vowels and the tatweel, joiners.
            '\u{300}'..='\u{36F}'
            | '\u{591}'..='\u{5C7}'
            | '\u{610}'..='\u{61A}'
            | '\u{640}'
            | '\u{64B}'..='\u{65F}'
            | '\u{670}'
            | '\u{200C}'
            | '\u{200D}' => {}
            'ı' => self.push('i', at),
            'ł' => self.push('l', at),
            'đ' | 'ð' => self.push('d', at),
            'ø' => self.push('o', at),
            'æ' => "ae".chars().for_each(|c| self.push(c, at)),
            'œ' => "oe".chars().for_each(|c| self.push(c, at)),
            'ß' => "ss".chars().for_each(|c| self.push(c, at)),
            'þ' => self.push('t', at),
            'ς' => self.push('σ', at),
            // Persian and Arabic forms of the same letters.
            'ی' | 'ى' => self.push('ي', at),
            'ک' => self.push('ك', at),
            part if part.is_whitespace() => self.push_space(at),
            part => self.push(part.to_ascii_lowercase(), at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_any_script_are_ascii() {
        assert_eq!(normalized("٤٨٢٩١٣ ۴۸۲۹۱۳ ４８２９１３ ४८२९१३ ๔๘๒๙๑๓ 𝟒𝟖𝟐𝟗𝟏𝟑"), ["482913"; 6].join(" "));
    }

    #[test]
    fn what_is_not_seen_is_left_out() {
        assert_eq!(normalized("4\u{200B}8\u{FEFF}2\u{2069}913 1\u{FE0F}\u{20E3}2"), "482913 12");
    }

    #[test]
    fn dashes_spaces_and_widths_are_ascii() {
        assert_eq!(normalized("123–456\u{A0}：Ａ"), "123-456 :A");
    }

    #[test]
    fn nothing_outside_ascii_is_part_of_an_address() {
        for after in ["（24h", "２４時間", "［1］", "～", "＆x=1", "\u{200B}x", "–x", "٤"] {
            let text = normalized(&format!("「https://a.example/?t=a:/b{after}"));
            assert!(text.starts_with("「https://a.example/?t=a:/b "), "{text}");
        }
        assert_eq!(normalized("https://a.example/。：Ａ"), "https://a.example/。:A");
        assert_eq!(normalized("https://a.example/ Ａ：／Ｂ"), "https://a.example/ A:/B");
    }

    #[test]
    fn zeros_are_in_order() {
        assert!(ZEROS.is_sorted());
    }

    #[test]
    fn accents_and_case_do_not_count() {
        assert_eq!(fold("Código  VÉRIFIÉ, Łódź; İŞ").text, "codigo verifie, lodz; is");
    }

    #[test]
    fn places_lead_back() {
        let text = "é Sign-in";
        let folded = fold(text);
        let at = folded.text.find("sign in").unwrap();
        assert_eq!(&text[folded.origin[at] as usize..], "Sign-in");
        assert_eq!(folded.origin.len(), folded.text.len() + 1);
    }
}
