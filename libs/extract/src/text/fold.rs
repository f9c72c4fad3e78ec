//! Text as words are looked up in it: lower case, without accents, and with one space between words.

use unicode_normalization::char::decompose_compatible;

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
