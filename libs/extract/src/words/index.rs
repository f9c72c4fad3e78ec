//! Where the phrases are in a folded text.

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored};

use super::table::{Phrase, has_spaces, is_proclitic};

/// All phrases: those that begin where a word does, and the few that may begin within one. So of most words no more
/// than the first letters are looked up in the large automaton.
pub(super) struct Index {
    of_words: Vec<Phrase>,
    at_starts: NFA,
    of_parts: Vec<Phrase>,
    anywhere: AhoCorasick,
}

/// A phrase that was found in a folded text.
pub(super) struct Match<'a> {
    pub(super) phrase: &'a Phrase,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Index {
    pub(super) fn new(phrases: Vec<Phrase>) -> Self {
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
    pub(super) fn of_words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Match<'a>> {
        starts(text).flat_map(move |start| self.at(text, start))
    }

    /// Phrases that may begin within a word, in order of where they end.
    pub(super) fn of_parts<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Match<'a>> {
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
