//! The words that say what a number or a link is, of all languages at once.
//!
//! `words/*.txt` has a file a language; a line is a [`Class`] and its phrases. Phrases are looked up in folded text
//! (`text::fold`). In scripts that have spaces a phrase is one of whole words; `*` at an end lets a word go on there,
//! `=` before a word makes its accents count, and `^` its capitals.

mod index;
mod table;

use std::cmp::Reverse;
use std::sync::LazyLock;

use crate::text::fold::{Folded, fold};
use index::{Index, Match};
pub(crate) use table::Class;
use table::{GROUPS, phrases};

/// Hits of a part that are kept.
const HITS_MAX: usize = 20_000;

/// A phrase that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Where in the text.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) class: Class,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(phrases()));

/// Finds phrases in a text, in order. Of phrases of a group within one another only the longest counts, so that a
/// `promo code` is no `code`.
pub(crate) fn find_words(text: &str) -> Vec<Hit> {
    let folded = fold(text);
    let is_whole = |found: &Match<'_>| {
        let written = folded.origin[found.start] as usize..folded.origin[found.end] as usize;
        found.phrase.stands_at(&folded.text, found.start, found.end)
            && text.get(written).is_some_and(|written| found.phrase.is_written(written))
    };
    let of_words = INDEX.of_words(&folded.text).filter(is_whole).take(HITS_MAX);
    let of_parts = INDEX.of_parts(&folded.text).filter(is_whole).take(HITS_MAX);
    let extent = |found: Match<'_>| {
        let (start, end) = found.phrase.extent(&folded.text, found.start, found.end);
        (start, end, found.phrase.text.len(), found.phrase.class)
    };
    let mut found: Vec<(usize, usize, usize, Class)> = of_words.chain(of_parts).map(extent).collect();
    // Of phrases that are in one word, the one that is most of it.
    found.sort_by_key(|(start, end, len, class)| (*start, Reverse(*end), Reverse(*len), *class));
    found.truncate(HITS_MAX);
    let mut hits: Vec<Hit> = Vec::new();
    let mut longest = [(0, 0, 0); GROUPS];
    for (start, end, len, class) in found {
        let longest = &mut longest[class.group()];
        if end > longest.1 || (start, end, len) == *longest {
            *longest = (start, end, len);
            hits.push(hit(&folded, start, end, class));
        }
    }
    hits
}

fn hit(folded: &Folded, start: usize, end: usize, class: Class) -> Hit {
    Hit { start: folded.origin[start] as usize, end: folded.origin[end] as usize, class }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Vec<(String, Class)> {
        find_words(text)
            .into_iter()
            .map(|hit| (text[hit.start..hit.end].trim().to_owned(), hit.class))
            .collect()
    }

    #[test]
    fn finds_whole_words_and_the_longest() {
        assert!(classes("a barcode").is_empty() || classes("a barcode")[0].1 == Class::OtherCode);
        assert_eq!(classes("promo code")[0].1, Class::OtherCode);
        assert!(classes("promo code").iter().all(|(_, class)| !class.names_code()));
    }

    #[test]
    fn finds_words_in_other_scripts() {
        for text in [
            "您的验证码是",
            "認証コード",
            "인증번호는",
            "رمز التحقق",
            "קוד האימות",
            "รหัสยืนยัน",
            "код подтверждения",
        ] {
            assert!(classes(text).iter().any(|(_, class)| class.names_code()), "{text}");
        }
    }
}
