//! The words that say what a number or a link is, of all languages at once.
//!
//! `words/*.txt` has a file a language; a line is a [`Class`] and its phrases. Phrases are looked up in folded text
//! (`text::chars::fold`). In scripts that have spaces a phrase is one of whole words; `*` at an end lets a word go on
//! there, `=` before a word makes its accents count, and `^` its capitals.

mod table;

use std::cmp::Reverse;
use std::sync::LazyLock;

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored};

use self::table::{GROUPS, Phrase, has_spaces, is_proclitic, phrases};
use crate::text::chars::{Folded, fold};

pub(crate) use table::Class;

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

/// All phrases: those that begin where a word does, and the few that may begin within one. So of most words no more
/// than the first letters are looked up in the large automaton.
struct Index {
    of_words: Vec<Phrase>,
    at_starts: NFA,
    of_parts: Vec<Phrase>,
    anywhere: AhoCorasick,
}

/// A phrase that was found in a folded text.
struct Match<'a> {
    phrase: &'a Phrase,
    start: usize,
    end: usize,
}

impl Index {
    fn new(phrases: Vec<Phrase>) -> Self {
        let (of_parts, of_words): (Vec<_>, Vec<_>) =
            phrases.into_iter().partition(|phrase| phrase.open_start);
        let at_starts = NFA::new(texts(&of_words)).expect("some ten thousand short phrases fit");
        let anywhere = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(texts(&of_parts))
            .expect("a few hundred short phrases fit");
        Self { of_words, at_starts, of_parts, anywhere }
    }

    /// Phrases that begin where a word does, in order of where they begin.
    fn of_words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Match<'a>> {
        starts(text).flat_map(move |start| self.at(text, start))
    }

    /// Phrases that may begin within a word, in order of where they end.
    fn of_parts<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Match<'a>> {
        self.anywhere.find_overlapping_iter(text).map(|found| Match {
            phrase: &self.of_parts[found.pattern().as_usize()],
            start: found.start(),
            end: found.end(),
        })
    }

    fn at<'a>(&'a self, text: &'a str, start: usize) -> impl Iterator<Item = Match<'a>> {
        let automaton = &self.at_starts;
        let mut state = automaton.start_state(Anchored::Yes).expect("an NFA has one");
        let states = text.as_bytes()[start..].iter().zip(start + 1..).map_while(move |(byte, end)| {
            state = automaton.next_state(Anchored::Yes, state, *byte);
            (!automaton.is_dead(state)).then_some((state, end))
        });
        states.filter(|(state, _)| automaton.is_match(*state)).flat_map(move |(state, end)| {
            let patterns = (0..automaton.match_len(state)).map(move |at| automaton.match_pattern(state, at));
            patterns
                .map(|pattern| &self.of_words[pattern.as_usize()])
                // A state also has the phrases that begin later and end with this one.
                .filter(move |phrase| phrase.text.len() == end - start)
                .map(move |phrase| Match { phrase, start, end })
        })
    }
}

fn texts(phrases: &[Phrase]) -> impl Iterator<Item = &str> {
    phrases.iter().map(|phrase| phrase.text.as_str())
}

/// Where a phrase may begin: everywhere but within a word of a script with spaces, unless after a proclitic.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let mut is_after_letter = false;
    text.char_indices().filter_map(move |(at, c)| {
        let is_letter = has_spaces(c);
        let is_start = !(is_letter && is_after_letter);
        is_after_letter = is_letter && !is_proclitic(c);
        is_start.then_some(at)
    })
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
