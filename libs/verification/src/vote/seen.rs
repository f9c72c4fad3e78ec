//! Records of servers in a form that is safe to store and show: those who run the servers choose their content.

use std::collections::BTreeSet;

use hickory_proto::rr::Name;

/// Records that are kept at most.
const RECORDS_MAX: usize = 5;
/// Characters of a record that are kept at most.
const CHARACTERS_MAX: usize = 255;

/// The texts of records: the first 5 in sorted order, each once and at most 255 characters, U+FFFD for invisible
/// characters. It does not depend on the order in which servers answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SeenRecords(BTreeSet<String>);

impl SeenRecords {
    /// The texts, sorted.
    pub fn into_texts(self) -> Vec<String> {
        self.0.into_iter().collect()
    }

    fn keep(&mut self, text: String) {
        self.0.insert(text);
        if self.0.len() > RECORDS_MAX {
            self.0.pop_last();
        }
    }

    /// The records of both.
    pub(super) fn merge(mut self, other: Self) -> Self {
        other.0.into_iter().for_each(|text| self.keep(text));
        self
    }
}

impl FromIterator<String> for SeenRecords {
    fn from_iter<I: IntoIterator<Item = String>>(records: I) -> Self {
        let mut seen = Self::default();
        records.into_iter().for_each(|record| seen.keep(shown(&record)));
        seen
    }
}

fn shown(record: &str) -> String {
    record
        .chars()
        .take(CHARACTERS_MAX)
        .map(|c| if is_visible(c) { c } else { char::REPLACEMENT_CHARACTER })
        .collect()
}

/// Not a control character, without width, or one that changes the direction of text.
fn is_visible(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !c.is_control() && !is_format
}

/// A host name without the last dot, in lower case: servers may repeat the random case of a query.
pub(crate) fn host_text(host: &Name) -> String {
    let text = host.to_lowercase().to_ascii();
    match text.strip_suffix('.') {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(records: &[&str]) -> Vec<String> {
        records.iter().map(|record| (*record).to_owned()).collect::<SeenRecords>().into_texts()
    }

    #[test]
    fn keeps_five_records_sorted_without_duplicates() {
        assert_eq!(texts(&["c", "a", "f", "b", "a", "e", "d"]), ["a", "b", "c", "d", "e"]);
        assert_eq!(texts(&[]), [""; 0]);
        assert_eq!(texts(&[""]), [""], "a record without text is one");
    }

    #[test]
    fn replaces_invisible_characters() {
        let marked = "a\u{fffd}b";
        for c in
            ['\0', '\x07', '\x1b', '\n', '\x7f', '\u{9b}', '\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}']
        {
            assert_eq!(texts(&[&format!("a{c}b")]), [marked], "{c:?}");
        }
        assert_eq!(texts(&["tempmail-verify= ä字😀\""]), ["tempmail-verify= ä字😀\""]);
    }

    #[test]
    fn cuts_a_long_record_between_characters() {
        assert_eq!(texts(&[&"ä".repeat(300)]), ["ä".repeat(255)]);
        let (one, two) = (format!("{}1", "x".repeat(255)), format!("{}2", "x".repeat(255)));
        assert_eq!(texts(&[&one, &two]).len(), 1, "what is kept of them is the same");
    }

    #[test]
    fn shows_hosts_in_lower_case_without_the_last_dot() {
        for (name, text) in
            [("Mail.ACME.test.", "mail.acme.test"), ("mail.acme.test", "mail.acme.test"), (".", ".")]
        {
            assert_eq!(host_text(&Name::from_ascii(name).unwrap()), text);
        }
        let odd = Name::from_labels([&b"a.b\0\x1b\xff"[..], b"test"]).unwrap();
        let text = host_text(&odd);
        assert!(text.bytes().all(|octet| octet.is_ascii_graphic()), "{text}");
    }

    proptest! {
        #[test]
        fn does_not_depend_on_order_repetition_or_grouping(
            (records, shuffled) in prop::collection::vec("[a-d\u{0}\u{200b}ä]{0,4}", 0..40)
                .prop_flat_map(|records| (Just(records.clone()), Just(records).prop_shuffle())),
            at in any::<prop::sample::Index>(),
        ) {
            let seen: SeenRecords = records.iter().cloned().collect();
            let (head, tail) = shuffled.split_at(at.index(shuffled.len() + 1));
            let grouped = SeenRecords::from_iter(head.to_vec()).merge(tail.iter().chain(head).cloned().collect());
            prop_assert_eq!(&seen, &grouped);
            prop_assert!(seen.into_texts().len() <= 5);
        }
    }
}
