//! Searches of drop-in surfaces: conditions on a message, which its row decides alone wherever it can.

mod compared;

use jiff::Timestamp;
use tempmail_mime::Address;
use tempmail_model::address::RecipientAddress;
use tempmail_store::MessageRow;

pub(super) use self::compared::Compared;
use self::compared::Field;
use crate::http::error::ApiError;
use crate::message::{Digest, folded};

/// Conditions of a search.
const CONDITIONS_MAX: usize = 32;
/// Characters of a word or phrase.
const WORD_MAX: usize = 256;

/// A word of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// As it was given.
    text: String,
    /// As it is compared.
    folded: String,
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), folded: folded(text) }
    }
}

impl Word {
    /// A word of a search.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        if text.chars().count() > WORD_MAX {
            return Err(ApiError::InvalidRequest(
                format!("A word of a search has at most {WORD_MAX} characters.").into(),
            ));
        }
        Ok(text.into())
    }

    /// As it was given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// What a message is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    /// `From`, or the sender of the envelope, contains it.
    From(Word),
    /// The recipient or `To` contains it.
    To(Word),
    /// The recipient, or an address of `To`, `Cc` or `Bcc`, is it.
    Recipient(Word),
    /// The field contains it.
    Cc(Word),
    Bcc(Word),
    ReplyTo(Word),
    /// Any of the addresses contains it.
    Addressed(Word),
    Subject(Word),
    MessageId(Word),
    /// Subject, addresses or text contain it.
    Anywhere(Word),
    /// The text contains it.
    Text(Word),
    /// There are attachments.
    Attachment,
    /// There are attachments that are displayed within the text.
    Inline,
    Read(bool),
    /// It was accepted before this.
    Before(Timestamp),
    /// It was accepted at this or later.
    Since(Timestamp),
    /// It is larger, or smaller, than this many bytes.
    Larger(u64),
    Smaller(u64),
    /// Its recipient is under this domain.
    Domain(String),
    /// No message.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    term: Term,
    is_negated: bool,
}

/// A search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Search {
    conditions: Vec<Condition>,
    /// Of these at least one has to hold, where there are any.
    alternatives: Vec<Term>,
}

impl Search {
    /// A search for everything.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// With a term that has to hold, or that must not.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn add(&mut self, term: Term, is_negated: bool) -> Result<(), ApiError> {
        if self.conditions.len() == CONDITIONS_MAX {
            return Err(ApiError::InvalidRequest(
                format!("A search has at most {CONDITIONS_MAX} words.").into(),
            ));
        }
        self.conditions.push(Condition { term, is_negated });
        Ok(())
    }

    /// With terms one of which has to hold.
    pub(super) fn any_of(&mut self, terms: Vec<Term>) {
        self.alternatives = terms;
    }

    /// The exact address that messages have to be to, if the search names one: that of a shared inbox, perhaps.
    pub(super) fn exact_recipient(&self) -> Option<RecipientAddress> {
        let required = self.conditions.iter().filter(|condition| !condition.is_negated);
        let mut terms = required.map(|condition| &condition.term).chain(match self.alternatives.as_slice() {
            [only] => Some(only),
            _ => None,
        });
        terms.find_map(|term| match term {
            Term::To(word) | Term::Recipient(word) => RecipientAddress::parse(word.text()).ok(),
            _ => None,
        })
    }

    /// Whether a message is found; `None` where that takes the digest, and the message has none.
    pub(super) fn matches(&self, message: &Compared<'_>) -> Option<bool> {
        self.evaluate(|term| term.matches_row(message).or_else(|| term.matches_digest(message)))
    }

    fn evaluate(&self, holds: impl Fn(&Term) -> Option<bool>) -> Option<bool> {
        let required = self
            .conditions
            .iter()
            .map(|condition| holds(&condition.term).map(|it| it != condition.is_negated));
        let alternatives = match self.alternatives.as_slice() {
            [] => Some(true),
            terms => any(terms.iter().map(&holds)),
        };
        all(required.chain([alternatives]))
    }
}

/// Whether all are true, as far as that is known.
fn all(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for value in values {
        match value {
            Some(false) => return Some(false),
            Some(true) => {}
            None => result = None,
        }
    }
    result
}

/// Whether any is true, as far as that is known.
fn any(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(values.map(|value| value.map(|it| !it))).map(|none| !none)
}

impl Term {
    fn matches_row(&self, message: &Compared<'_>) -> Option<bool> {
        let row = message.row;
        let has = |field: Field, word: &Word| message.has(field, &word.folded);
        // What a row has is part of what a message has: if it does not have the word, the rest may.
        let if_found = |is_found: bool| is_found.then_some(true);
        match self {
            Self::From(word) => Some(has(Field::Sender, word) || has(Field::From, word)),
            Self::To(word) => if_found(has(Field::Recipient, word)),
            Self::Addressed(word) => if_found(has(Field::Recipient, word) || has(Field::From, word)),
            Self::Recipient(word) => if_found(message.is(Field::Recipient, &word.folded)),
            Self::Subject(word) => Some(has(Field::Subject, word)),
            Self::Anywhere(word) => {
                let fields = [Field::Subject, Field::From, Field::Recipient, Field::Preview];
                if_found(fields.into_iter().any(|field| has(field, word)))
            }
            Self::Text(word) => if_found(has(Field::Preview, word)),
            Self::Read(is_read) => Some(row.is_read == *is_read),
            Self::Before(time) => Some(row.created_at() < *time),
            Self::Since(time) => Some(row.created_at() >= *time),
            Self::Larger(bytes) => Some(u64::try_from(row.size).unwrap_or(0) > *bytes),
            Self::Smaller(bytes) => Some(u64::try_from(row.size).unwrap_or(0) < *bytes),
            Self::Domain(domain) => Some(row.address.rsplit_once('@').is_some_and(|(_, of)| of == domain)),
            Self::Nothing => Some(false),
            Self::Cc(_)
            | Self::Bcc(_)
            | Self::ReplyTo(_)
            | Self::MessageId(_)
            | Self::Attachment
            | Self::Inline => None,
        }
    }

    /// What the row does not decide; `None` where the message has no digest.
    fn matches_digest(&self, message: &Compared<'_>) -> Option<bool> {
        let digest = message.digest?;
        let has =
            |fields: &[Field], word: &Word| fields.iter().any(|field| message.has(*field, &word.folded));
        const ADDRESSES: &[Field] = &[Field::To, Field::Cc, Field::Bcc, Field::ReplyTo];
        Some(match self {
            Self::To(word) => has(&[Field::To], word),
            Self::Recipient(word) => message.is(Field::Addresses, &word.folded),
            Self::Cc(word) => has(&[Field::Cc], word),
            Self::Bcc(word) => has(&[Field::Blind], word),
            Self::ReplyTo(word) => has(&[Field::ReplyTo], word),
            Self::Addressed(word) => has(ADDRESSES, word),
            Self::MessageId(word) => has(&[Field::MessageId], word),
            Self::Anywhere(word) => digest.text.contains(&word.folded) || has(ADDRESSES, word),
            Self::Text(word) => digest.text.contains(&word.folded),
            Self::Attachment => digest.attachments > 0,
            Self::Inline => digest.inline > 0,
            _ => false,
        })
    }
}

/// Those of `Bcc`, and the recipient where no field names it.
pub(super) fn blind_recipients(row: &MessageRow, digest: &Digest) -> Vec<Address> {
    let mut blind = digest.bcc.clone();
    let named = [&digest.to, &digest.cc, &digest.bcc].into_iter().flatten();
    if named.into_iter().all(|address| !address.email.eq_ignore_ascii_case(&row.address)) {
        blind.push(Address { name: String::new(), email: row.address.clone() });
    }
    blind
}

#[cfg(test)]
mod tests {
    use tempmail_model::id::new_id;

    use super::compared::tests::FOLDED;
    use super::*;

    fn message() -> (MessageRow, Digest) {
        let row = MessageRow {
            id: new_id("2026-11-21T10:00:00Z".parse().unwrap()),
            address: "kim@shop.example".into(),
            sender: "bounce@mailer.example".into(),
            from_text: "Shop <hello@shop.example>".into(),
            from_email: "hello@shop.example".into(),
            subject: "Your Order".into(),
            preview: "Thank you".into(),
            size: 100,
            ..MessageRow::default()
        };
        let digest = Digest {
            to: vec![Address { name: "Team".into(), email: "team@shop.example".into() }],
            text: "thank you for it\nbelow the preview".into(),
            attachments: 1,
            ..Digest::default()
        };
        (row, digest)
    }

    fn search(terms: &[(Term, bool)]) -> Search {
        let mut search = Search::new();
        for (term, is_negated) in terms {
            search.add(term.clone(), *is_negated).unwrap();
        }
        search
    }

    #[test]
    fn decides_by_the_row_alone_where_it_can() {
        let (row, digest) = message();
        for (term, by_row, whole) in [
            (Term::From("hello@".into()), Some(true), true),
            (Term::From("mailer".into()), Some(true), true),
            (Term::To("kim@".into()), Some(true), true),
            (Term::To("team@".into()), None, true),
            (Term::To("nobody".into()), None, false),
            (Term::Recipient("kim@shop.example".into()), Some(true), true),
            (Term::Recipient("im@shop.example".into()), None, false),
            (Term::Bcc("kim@".into()), None, true),
            (Term::Subject("order".into()), Some(true), true),
            (Term::Anywhere("below".into()), None, true),
            (Term::Text("order".into()), None, false),
            (Term::Attachment, None, true),
            (Term::Read(true), Some(false), false),
            (Term::Larger(100), Some(false), false),
            (Term::Domain("shop.example".into()), Some(true), true),
            (Term::Domain("p.example".into()), Some(false), false),
        ] {
            let search = search(&[(term.clone(), false)]);
            assert_eq!(search.matches(&Compared::of(&row)), by_row, "{term:?}");
            assert_eq!(search.matches(&Compared::of(&row).with(&digest)), Some(whole), "{term:?}");
            let negated = self::search(&[(term.clone(), true)]);
            assert_eq!(negated.matches(&Compared::of(&row).with(&digest)), Some(!whole), "not {term:?}");
        }
    }

    #[test]
    fn combines_terms_and_alternatives() {
        let (row, digest) = message();
        let whole = Compared::of(&row).with(&digest);
        let order = Term::Subject("order".into());
        let none = Term::Subject("invoice".into());
        assert_eq!(search(&[(order.clone(), false), (none.clone(), true)]).matches(&whole), Some(true));
        assert_eq!(search(&[(order.clone(), false), (none.clone(), false)]).matches(&whole), Some(false));
        let mut either = search(&[(order.clone(), false)]);
        either.any_of(vec![none.clone(), Term::Attachment]);
        assert_eq!(either.matches(&Compared::of(&row)), None);
        assert_eq!(either.matches(&whole), Some(true));
        either.any_of(vec![none]);
        assert_eq!(either.matches(&whole), Some(false));
    }

    #[test]
    fn folds_each_field_once_for_any_number_of_words() {
        let (row, digest) = message();
        let words = |count: usize| {
            let term = |i: usize| (Term::Anywhere(format!("word {i}").as_str().into()), true);
            search(&(0..count).map(term).collect::<Vec<_>>())
        };
        let folded_fields = |search: &Search, message: &Compared<'_>, expected: Option<bool>| {
            FOLDED.set(0);
            assert_eq!(search.matches(message), expected);
            FOLDED.get()
        };
        for count in [1, CONDITIONS_MAX] {
            let by_row = Compared::of(&row);
            assert_eq!(folded_fields(&words(count), &by_row, None), 4, "subject, author, recipient, preview");
            assert_eq!(
                folded_fields(&words(count), &by_row.with(&digest), Some(true)),
                4,
                "the lists of addresses"
            );
        }
    }

    #[test]
    fn knows_the_exact_recipient_that_a_search_names() {
        let exact = |terms: &[(Term, bool)]| {
            search(terms).exact_recipient().map(|address| address.as_str().to_owned())
        };
        let kim = Term::To("kim@shop.example".into());
        assert_eq!(
            exact(&[(Term::Attachment, false), (kim.clone(), false)]),
            Some("kim@shop.example".into())
        );
        assert_eq!(exact(&[(kim.clone(), true)]), None);
        assert_eq!(exact(&[(Term::To("shop.example".into()), false)]), None);
    }

    #[test]
    fn bounds_words_and_their_length() {
        let mut search = Search::new();
        assert!((0..CONDITIONS_MAX).all(|_| search.add(Term::Attachment, false).is_ok()));
        assert!(search.add(Term::Attachment, false).is_err());
        assert!(
            Word::parse(&"x".repeat(WORD_MAX)).is_ok() && Word::parse(&"x".repeat(WORD_MAX + 1)).is_err()
        );
    }
}
