//! Which messages match a wait, by what is stored of them beside their contents, and how many rows are read to find them.

use tempmail_store::MessageRow;

use crate::message::folded;

/// Rows of the first page: a client that is behind finds its mail among few.
const FIRST: i64 = 32;
/// Rows of a page at most.
const MOST: i64 = 512;

/// Substrings that the From header, the recipient's address and the subject must contain, as texts are compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    from: Option<String>,
    to: Option<String>,
    subject: Option<String>,
}

impl Filter {
    /// A filter of the From header and the subject; an empty part matches every message.
    pub(crate) fn new(from: Option<&str>, subject: Option<&str>) -> Self {
        let part = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(folded);
        Self { from: part(from), to: None, subject: part(subject) }
    }

    /// The same filter, which also requires a part of the recipient's address.
    pub(crate) fn to(self, to: Option<&str>) -> Self {
        let to = to.filter(|text| !text.is_empty()).map(folded);
        Self { to, ..self }
    }

    /// Whether every message matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.subject.is_none()
    }

    /// Whether a message matches.
    pub(crate) fn matches(&self, message: &MessageRow) -> bool {
        contains(&message.from_text, self.from.as_deref())
            && contains(&message.address, self.to.as_deref())
            && contains(&message.subject, self.subject.as_deref())
    }
}

fn contains(text: &str, part: Option<&str>) -> bool {
    part.is_none_or(|part| folded(text).contains(part))
}

/// How many rows a scan reads at a time where most of them may not match: each page has twice the rows of the one before.
#[derive(Debug)]
pub(crate) struct FilterPages {
    next: i64,
}

impl FilterPages {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// Rows of the next page.
    pub(crate) fn next_size(&mut self) -> i64 {
        let size = self.next;
        self.next = (size * 2).min(MOST);
        size
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use uuid::Uuid;

    use super::*;

    pub(crate) fn message(seq: i64) -> MessageRow {
        MessageRow { id: Uuid::from_u128(seq.unsigned_abs().into()), seq, ..MessageRow::default() }
    }

    #[test]
    fn compares_folded_texts_and_requires_every_part() {
        let mut mail = message(1);
        mail.from_text = "Ärzte <News@Shop.Example>".into();
        mail.address = "ada+news@inbox.example".into();
        mail.subject = "Your CO\u{200b}DE is 123".into();
        for (from, to, subject, expected) in [
            (None, None, None, true),
            (Some(""), Some(""), Some(""), true),
            (Some("ärzte"), None, None, true),
            (Some("news@shop"), None, Some("code IS"), true),
            (Some("news@shop"), Some("ADA+News@"), Some("code IS"), true),
            (Some("news@shop"), Some("bob"), Some("code IS"), false),
            (Some("shop"), None, Some("other"), false),
            (None, None, Some("your c\u{ad}ode"), true),
            (Some("other"), None, Some("code"), false),
        ] {
            assert_eq!(
                Filter::new(from, subject).to(to).matches(&mail),
                expected,
                "{from:?} {to:?} {subject:?}"
            );
        }
    }

    #[test]
    fn doubles_the_page_up_to_a_bound() {
        let mut pages = FilterPages::new();
        let sizes: Vec<_> = (0..7).map(|_| pages.next_size()).collect();
        assert_eq!(sizes, [32, 64, 128, 256, 512, 512, 512]);
    }
}
