//! Searches of drop-in surfaces: conditions on a message, which its row decides alone wherever it can.

use jiff::Timestamp;
use tempmail_mime::Address;
use tempmail_model::address::RecipientAddress;
use tempmail_store::MessageRow;

use crate::http::error::ApiError;
use crate::message::Digest;

/// Conditions of a search.
const CONDITIONS_MAX: usize = 32;
/// Characters of a word or phrase.
const WORD_MAX: usize = 256;

/// What a message is compared with. Words are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    /// `From`, or the sender of the envelope, contains it.
    From(String),
    /// The recipient or `To` contains it.
    To(String),
    /// The recipient, or an address of `To`, `Cc` or `Bcc`, is it.
    Recipient(String),
    /// The field contains it.
    Cc(String),
    Bcc(String),
    ReplyTo(String),
    /// Any of the addresses contains it.
    Addressed(String),
    Subject(String),
    MessageId(String),
    /// Subject, addresses or text contain it.
    Anywhere(String),
    /// The text contains it.
    Text(String),
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
            Term::To(word) | Term::Recipient(word) => RecipientAddress::parse(word).ok(),
            _ => None,
        })
    }

    /// Whether a message is found, as far as its row says; `None` where it takes the digest, too.
    pub(super) fn matches_row(&self, row: &MessageRow) -> Option<bool> {
        self.evaluate(|term| term.matches_row(row))
    }

    /// Whether a message is found.
    pub(super) fn matches(&self, row: &MessageRow, digest: &Digest) -> bool {
        let holds = |term: &Term| term.matches_row(row).unwrap_or_else(|| term.matches_digest(row, digest));
        self.evaluate(|term| Some(holds(term))) == Some(true)
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

/// A word of a search, in lower case.
///
/// # Errors
/// It is too long.
pub(super) fn word(text: &str) -> Result<String, ApiError> {
    if text.chars().count() > WORD_MAX {
        return Err(ApiError::InvalidRequest(
            format!("A word of a search has at most {WORD_MAX} characters.").into(),
        ));
    }
    Ok(text.to_lowercase())
}

impl Term {
    fn matches_row(&self, row: &MessageRow) -> Option<bool> {
        let has = |text: &str, word: &String| text.to_lowercase().contains(word.as_str());
        // What a row has is part of what a message has: if it does not have the word, the rest may.
        let if_found = |is_found: bool| is_found.then_some(true);
        match self {
            Self::From(word) => Some(has(&row.sender, word) || has(&row.from_text, word)),
            Self::To(word) | Self::Addressed(word) if has(&row.address, word) => Some(true),
            Self::Addressed(word) => if_found(has(&row.from_text, word)),
            Self::Recipient(word) => if_found(row.address == *word),
            Self::Subject(word) => Some(has(&row.subject, word)),
            Self::Anywhere(word) => if_found(
                [&row.subject, &row.from_text, &row.address, &row.preview].iter().any(|text| has(text, word)),
            ),
            Self::Text(word) => if_found(has(&row.preview, word)),
            Self::Read(is_read) => Some(row.is_read == *is_read),
            Self::Before(time) => Some(row.created_at() < *time),
            Self::Since(time) => Some(row.created_at() >= *time),
            Self::Larger(bytes) => Some(u64::try_from(row.size).unwrap_or(0) > *bytes),
            Self::Smaller(bytes) => Some(u64::try_from(row.size).unwrap_or(0) < *bytes),
            Self::Domain(domain) => Some(row.address.rsplit_once('@').is_some_and(|(_, of)| of == domain)),
            Self::Nothing => Some(false),
            Self::To(_)
            | Self::Cc(_)
            | Self::Bcc(_)
            | Self::ReplyTo(_)
            | Self::MessageId(_)
            | Self::Attachment
            | Self::Inline => None,
        }
    }

    /// What the row does not decide.
    fn matches_digest(&self, row: &MessageRow, digest: &Digest) -> bool {
        let has = |addresses: &[Address], word: &str| {
            addresses.iter().any(|address| address.to_string().to_lowercase().contains(word))
        };
        let recipients = [digest.to.as_slice(), &digest.cc, &digest.bcc];
        match self {
            Self::To(word) => has(&digest.to, word),
            Self::Recipient(word) => {
                recipients.concat().iter().any(|address| address.email.to_lowercase() == *word)
            }
            Self::Cc(word) => has(&digest.cc, word),
            Self::Bcc(word) => has(&blind_recipients(row, digest), word),
            Self::ReplyTo(word) => has(&digest.reply_to, word),
            Self::Addressed(word) => {
                recipients.iter().chain([&digest.reply_to.as_slice()]).any(|addresses| has(addresses, word))
            }
            Self::MessageId(word) => digest.message_id.to_lowercase().contains(word.as_str()),
            Self::Anywhere(word) => {
                digest.text.contains(word.as_str())
                    || recipients
                        .iter()
                        .chain([&digest.reply_to.as_slice()])
                        .any(|addresses| has(addresses, word))
            }
            Self::Text(word) => digest.text.contains(word.as_str()),
            Self::Attachment => digest.attachments > 0,
            Self::Inline => digest.inline > 0,
            _ => false,
        }
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
    use tempmail_model::message::OwnerKind;
    use tempmail_model::retention::RetentionClass;
    use uuid::Uuid;

    use super::*;

    fn message() -> (MessageRow, Digest) {
        let row = MessageRow {
            id: new_id("2026-11-21T10:00:00Z".parse().unwrap()),
            seq: 1,
            class: RetentionClass::FREE,
            mail: Uuid::nil(),
            owner_kind: OwnerKind::Mailbox,
            owner: Uuid::nil(),
            inbox: Uuid::nil(),
            tenant: None,
            address: "kim@shop.example".into(),
            sender: "bounce@mailer.example".into(),
            from_text: "Shop <hello@shop.example>".into(),
            from_email: "hello@shop.example".into(),
            subject: "Your Order".into(),
            preview: "Thank you".into(),
            size: 100,
            single_recipient: true,
            is_read: false,
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
            assert_eq!(search.matches_row(&row), by_row, "{term:?}");
            assert_eq!(search.matches(&row, &digest), whole, "{term:?}");
            let negated = self::search(&[(term.clone(), true)]);
            assert_eq!(negated.matches(&row, &digest), !whole, "not {term:?}");
        }
    }

    #[test]
    fn combines_terms_and_alternatives() {
        let (row, digest) = message();
        let order = Term::Subject("order".into());
        let none = Term::Subject("invoice".into());
        assert!(search(&[(order.clone(), false), (none.clone(), true)]).matches(&row, &digest));
        assert!(!search(&[(order.clone(), false), (none.clone(), false)]).matches(&row, &digest));
        let mut either = search(&[(order.clone(), false)]);
        either.any_of(vec![none.clone(), Term::Attachment]);
        assert_eq!(either.matches_row(&row), None);
        assert!(either.matches(&row, &digest));
        either.any_of(vec![none]);
        assert!(!either.matches(&row, &digest));
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
        assert!(word(&"x".repeat(WORD_MAX)).is_ok() && word(&"x".repeat(WORD_MAX + 1)).is_err());
    }
}
