//! Whether what stands right before a candidate introduces it.

use super::evidence::Place;

/// Words that stand between the name of a code and the code: `is`.
const COPULAS: &[&str] = &[
    "is",
    "ist",
    "lautet",
    "es",
    "est",
    "è",
    "é",
    "är",
    "er",
    "on",
    "je",
    "jest",
    "este",
    "to",
    "adalah",
    "ialah",
    "là",
    "είναι",
    "हूँ",
    "है",
    "هو",
    "هي",
    "היא",
    "הוא",
    "yra",
    "ir",
    "ay",
    "ni",
    "است",
    "ہے",
    "е",
    "це",
    "это",
];
/// Whether a word stands between the name of a code and the code.
pub(super) fn is_copula(word: &str) -> bool {
    COPULAS.contains(&word)
}

/// The same, of scripts without spaces.
const UNSPACED_COPULAS: &[&str] = &["は", "是", "为", "為", "คือ", "은", "는"];

impl Place<'_> {
    /// Whether nothing stands before the candidate in its sentence: `2031 is your PIN`.
    pub(super) fn opens_sentence(&self) -> bool {
        let before = &self.part.shown.text[self.sentence.start..self.candidate.range.start];
        !before.chars().any(char::is_alphanumeric)
    }

    /// Whether what stands right before it introduces it: `is`, a colon.
    pub(super) fn is_introduced(&self) -> bool {
        let before = self.part.shown.text[self.line.start..self.candidate.range.start].trim_end();
        let before = before.trim_end_matches(['"', '*', '„', '“', '«', '「', '\'', '(', '[']).trim_end();
        let last = before.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
        before.ends_with([':', '：', '-', '='])
            || is_copula(last)
            || UNSPACED_COPULAS.iter().any(|copula| before.ends_with(copula))
    }
}
