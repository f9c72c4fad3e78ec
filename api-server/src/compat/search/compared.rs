//! A message as searches compare it.

use std::cell::OnceCell;

use tempmail_mime::Address;
use tempmail_mime::text::comparable;
use tempmail_store::MessageRow;

use super::blind_recipients;
use crate::message::Digest;

/// What words are looked for in, besides the text of a digest.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    /// Of the row.
    Sender,
    From,
    Recipient,
    Subject,
    Preview,
    /// Of the digest: addresses with their names.
    To,
    Cc,
    Bcc,
    /// `Bcc`, and the recipient where no field names it.
    Blind,
    ReplyTo,
    /// The addresses of `To`, `Cc` and `Bcc`, without names.
    Addresses,
    MessageId,
}

/// Fields of a message.
const FIELDS: usize = Field::MessageId as usize + 1;

/// A message whose fields are put in the form that is [compared](comparable) when they are first compared, and once, however many words a search has.
pub(in crate::compat) struct Compared<'a> {
    pub(super) row: &'a MessageRow,
    pub(super) digest: Option<&'a Digest>,
    lowered: [OnceCell<Vec<String>>; FIELDS],
}

impl<'a> Compared<'a> {
    /// A message as far as its row says.
    pub(in crate::compat) fn of(row: &'a MessageRow) -> Self {
        Self { row, digest: None, lowered: [const { OnceCell::new() }; FIELDS] }
    }

    /// The same message with its digest.
    pub(in crate::compat) fn with(self, digest: &'a Digest) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// Whether a field contains a word in lower case. Without the digest its fields contain none.
    pub(super) fn has(&self, field: Field, word: &str) -> bool {
        self.lowered(field).iter().any(|text| text.contains(word))
    }

    /// Whether a field is a text in lower case, or one of its addresses is.
    pub(super) fn is(&self, field: Field, text: &str) -> bool {
        self.lowered(field).iter().any(|lowered| lowered == text)
    }

    fn lowered(&self, field: Field) -> &[String] {
        match (field.is_of_row(), self.digest) {
            (false, None) => &[],
            (_, digest) => self.lowered[field as usize].get_or_init(|| lowered(field, self.row, digest)),
        }
    }
}

impl Field {
    fn is_of_row(self) -> bool {
        matches!(self, Self::Sender | Self::From | Self::Recipient | Self::Subject | Self::Preview)
    }
}

fn lowered(field: Field, row: &MessageRow, digest: Option<&Digest>) -> Vec<String> {
    #[cfg(test)]
    tests::LOWERED.with(|all| all.set(all.get() + 1));
    let list = |addresses: fn(&Digest) -> &[Address]| {
        let addresses = digest.into_iter().flat_map(addresses);
        addresses.map(|address| comparable(&address.to_string())).collect()
    };
    let text = |text: &str| vec![comparable(text)];
    match field {
        Field::Sender => text(&row.sender),
        Field::From => text(&row.from_text),
        Field::Recipient => text(&row.address),
        Field::Subject => text(&row.subject),
        Field::Preview => text(&row.preview),
        Field::To => list(|digest| &digest.to),
        Field::Cc => list(|digest| &digest.cc),
        Field::Bcc => list(|digest| &digest.bcc),
        Field::ReplyTo => list(|digest| &digest.reply_to),
        Field::Blind => {
            let blind = digest.into_iter().flat_map(|digest| blind_recipients(row, digest));
            blind.map(|address| comparable(&address.to_string())).collect()
        }
        Field::Addresses => {
            let lists = digest.into_iter().flat_map(|digest| [&digest.to, &digest.cc, &digest.bcc]);
            lists.flatten().map(|address| comparable(&address.email)).collect()
        }
        Field::MessageId => digest.map(|digest| comparable(&digest.message_id)).into_iter().collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// How often a field was put in lower case.
        pub(in super::super) static LOWERED: Cell<usize> = const { Cell::new(0) };
    }
}
