//! A message as searches compare it.

use std::cell::OnceCell;

use tempmail_mime::Address;
use tempmail_store::MessageRow;

use super::blind_recipients;
use crate::message::{Digest, folded};

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

/// A message whose fields are folded when they are first compared, and once, however many words a search has.
pub(in crate::compat) struct Compared<'a> {
    pub(super) row: &'a MessageRow,
    pub(super) digest: Option<&'a Digest>,
    folded: [OnceCell<Vec<String>>; FIELDS],
}

impl<'a> Compared<'a> {
    /// A message as far as its row says.
    pub(in crate::compat) fn of(row: &'a MessageRow) -> Self {
        Self { row, digest: None, folded: [const { OnceCell::new() }; FIELDS] }
    }

    /// The same message with its digest.
    pub(in crate::compat) fn with(self, digest: &'a Digest) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// Whether a field contains a folded word. Without the digest its fields contain none.
    pub(super) fn has(&self, field: Field, word: &str) -> bool {
        self.folded_field(field).iter().any(|text| text.contains(word))
    }

    /// Whether a field is a folded text, or one of its addresses is.
    pub(super) fn is(&self, field: Field, text: &str) -> bool {
        self.folded_field(field).iter().any(|folded| folded == text)
    }

    fn folded_field(&self, field: Field) -> &[String] {
        match (field.is_of_row(), self.digest) {
            (false, None) => &[],
            (_, digest) => self.folded[field as usize].get_or_init(|| folded_field(field, self.row, digest)),
        }
    }
}

impl Field {
    fn is_of_row(self) -> bool {
        matches!(self, Self::Sender | Self::From | Self::Recipient | Self::Subject | Self::Preview)
    }
}

fn folded_field(field: Field, row: &MessageRow, digest: Option<&Digest>) -> Vec<String> {
    #[cfg(test)]
    tests::FOLDED.with(|all| all.set(all.get() + 1));
    let list = |addresses: fn(&Digest) -> &[Address]| {
        let addresses = digest.into_iter().flat_map(addresses);
        addresses.map(|address| folded(&address.to_string())).collect()
    };
    let text = |text: &str| vec![folded(text)];
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
            blind.map(|address| folded(&address.to_string())).collect()
        }
        Field::Addresses => {
            let lists = digest.into_iter().flat_map(|digest| [&digest.to, &digest.cc, &digest.bcc]);
            lists.flatten().map(|address| folded(&address.email)).collect()
        }
        Field::MessageId => digest.map(|digest| folded(&digest.message_id)).into_iter().collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// How often a field was folded.
        pub(in super::super) static FOLDED: Cell<usize> = const { Cell::new(0) };
    }
}
