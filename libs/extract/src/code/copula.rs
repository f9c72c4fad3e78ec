//! Words between the name of a code and the code: `your code is 123456`.

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

/// The same, of scripts without spaces.
const UNSPACED_COPULAS: &[&str] = &["は", "是", "为", "為", "คือ", "은", "는"];

/// Whether a word stands between the name of a code and the code.
pub(super) fn is_copula(word: &str) -> bool {
    COPULAS.contains(&word)
}

/// Whether a text of a script without spaces ends with such a word.
pub(super) fn ends_with_unspaced_copula(text: &str) -> bool {
    UNSPACED_COPULAS.iter().any(|copula| text.ends_with(copula))
}
