//! What lists and searches of drop-in surfaces show and compare of a message beyond its row. It is made from the raw data,
//! and kept in memory for a while: their clients ask again and again. Whoever gets one was found to have the right to the
//! message before.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tempmail_extract::shown_text;
use tempmail_mime::{Address, Role, Structure, decode_header, header_fields, parse_addresses};
use uuid::Uuid;

use super::texts::{body, folded};

/// Bytes of the text that searches look at.
pub(crate) const TEXT_MAX: usize = 64 << 10;
/// Bytes of addresses.
const ADDRESSES_MAX: usize = 8 << 10;
/// Bytes of `Message-ID`, as a line of mail has at most.
const MESSAGE_ID_MAX: usize = 998;
/// Bytes of the digests that are kept, without what a map needs for each.
const KEPT_BYTES: usize = 32 << 20;
/// Bytes of a digest beside its texts.
const ENTRY: usize = 512;

/// The digest of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    /// The first address of `From`.
    pub(crate) from: Option<Address>,
    /// `To`, `Cc`, `Bcc` and `Reply-To`, all together up to 8 KiB.
    pub(crate) to: Vec<Address>,
    pub(crate) cc: Vec<Address>,
    pub(crate) bcc: Vec<Address>,
    pub(crate) reply_to: Vec<Address>,
    /// `Message-ID` without angle brackets; "" where there is none.
    pub(crate) message_id: String,
    /// `Date`, if it is one.
    pub(crate) date: Option<Timestamp>,
    /// Attachments that are not displayed within the text.
    pub(crate) attachments: usize,
    /// Those that are.
    pub(crate) inline: usize,
    /// The text body and what the HTML shows, together up to [`TEXT_MAX`] before it is folded.
    pub(crate) text: String,
}

impl Digest {
    /// The digest of a message with this raw data.
    pub(crate) fn of_message(raw: &[u8]) -> Self {
        let structure = Structure::parse(raw);
        let mut digest = Self { text: search_text(&structure, raw), ..Self::default() };
        let mut addresses = AddressBudget(ADDRESSES_MAX);
        for field in header_fields(&raw[structure.header.clone()]) {
            digest.read_field(field.name, field.value, &mut addresses);
        }
        let attachments = structure.leaves.iter().filter(|leaf| leaf.role == Role::Attachment);
        let (inline, others): (Vec<_>, Vec<_>) = attachments.partition(|leaf| leaf.inline);
        Self { attachments: others.len(), inline: inline.len(), ..digest }
    }

    fn read_field(&mut self, name: &str, value: &[u8], addresses: &mut AddressBudget) {
        let list = match name.to_ascii_lowercase().as_str() {
            "from" => {
                self.from = self.from.take().or_else(|| addresses.take(value).next());
                return;
            }
            "message-id" if self.message_id.is_empty() => {
                let id = decode_header(value);
                let id = id.trim().trim_start_matches('<').trim_end_matches('>');
                id[..id.floor_char_boundary(MESSAGE_ID_MAX)].clone_into(&mut self.message_id);
                return;
            }
            "date" if self.date.is_none() => {
                self.date = rfc2822::parse(decode_header(value).trim()).ok().map(|date| date.timestamp());
                return;
            }
            "to" => &mut self.to,
            "cc" => &mut self.cc,
            "bcc" => &mut self.bcc,
            "reply-to" => &mut self.reply_to,
            _ => return,
        };
        list.extend(addresses.take(value));
    }

    fn bytes(&self) -> usize {
        let lists = [&self.to, &self.cc, &self.bcc, &self.reply_to];
        let addresses = lists.into_iter().flatten().chain(&self.from);
        ENTRY + addresses.map(bytes_of).sum::<usize>() + self.message_id.len() + self.text.len()
    }
}

/// Bytes of addresses that a digest may still have.
struct AddressBudget(usize);

impl AddressBudget {
    /// The addresses of a field, as far as they fit.
    fn take(&mut self, value: &[u8]) -> impl Iterator<Item = Address> {
        parse_addresses(value).map_while(|address| {
            self.0 = self.0.checked_sub(bytes_of(&address))?;
            Some(address)
        })
    }
}

fn bytes_of(address: &Address) -> usize {
    size_of::<Address>() + address.name.len() + address.email.len()
}

fn search_text(structure: &Structure, raw: &[u8]) -> String {
    let mut text = body(structure, raw, Role::Text);
    cut(&mut text);
    let html = body(structure, raw, Role::Html);
    if !html.is_empty() && text.len() < TEXT_MAX {
        text.push('\n');
        text.push_str(&shown_text(&html, TEXT_MAX).text);
        cut(&mut text);
    }
    folded(&text)
}

fn cut(text: &mut String) {
    let end = text.floor_char_boundary(TEXT_MAX);
    text.truncate(end);
}

/// The digests that were made last.
pub(super) struct DigestCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    digests: HashMap<Uuid, Arc<Digest>>,
    /// Oldest first.
    order: VecDeque<Uuid>,
    bytes: usize,
}

impl DigestCache {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn get(&self, id: Uuid) -> Option<Arc<Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).digests.get(&id).cloned()
    }

    /// Keeps a digest, in place of the oldest ones.
    pub(super) fn keep(&self, id: Uuid, digest: &Arc<Digest>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.digests.insert(id, Arc::clone(digest)).is_some() {
            return;
        }
        kept.order.push_back(id);
        kept.bytes += digest.bytes();
        while kept.bytes > KEPT_BYTES
            && let Some(oldest) = kept.order.pop_front()
        {
            if let Some(digest) = kept.digests.remove(&oldest) {
                kept.bytes -= digest.bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &[u8] =
        b"From: Ada <ada@a.example>, x@a.example\r\nTo: B <b@b.example>\r\nTo: c@b.example\r\n\
        Cc: d@b.example\r\nReply-To: r@a.example\r\nMessage-ID: <1@a.example>\r\n\
        Date: Tue, 24 Nov 2026 10:00:00 +0100\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n\
        Hello\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>World</p>\r\n--b\r\nContent-Type: image/png\r\n\
        Content-Disposition: inline; filename=a.png\r\n\r\nx\r\n--b\r\nContent-Type: application/pdf\r\n\
        Content-Disposition: attachment; filename=a.pdf\r\n\r\nx\r\n--b--\r\n";

    #[test]
    fn reads_what_lists_show() {
        let digest = Digest::of_message(RAW);
        assert_eq!(digest.from.as_ref().unwrap().to_string(), "Ada <ada@a.example>");
        let emails: Vec<_> = digest.to.iter().map(|address| address.email.as_str()).collect();
        assert_eq!(emails, ["b@b.example", "c@b.example"]);
        assert_eq!((digest.cc.len(), digest.bcc.len(), digest.reply_to.len()), (1, 0, 1));
        assert_eq!(digest.message_id, "1@a.example");
        assert_eq!(digest.date.unwrap().to_string(), "2026-11-24T09:00:00Z");
        assert_eq!((digest.attachments, digest.inline), (1, 1));
        assert!(digest.text.contains("hello") && digest.text.contains("world"), "{}", digest.text);
    }

    #[test]
    fn reads_any_octets_within_its_bounds() {
        let long =
            [b"From: \"".to_vec(), vec![b'n'; ADDRESSES_MAX], b"\" <a@b.example>\r\n".to_vec()].concat();
        let many = [
            b"Message-ID: <".to_vec(),
            vec![b'm'; 2_000],
            b">\r\nTo: ".to_vec(),
            b"a@b.example,".repeat(1_000),
        ];
        let raw = [long, many.concat(), b"\r\n\r\n".to_vec(), vec![b'x'; 1 << 20]].concat();
        let digest = Digest::of_message(&raw);
        assert_eq!(
            (&digest.from, digest.text.len(), digest.message_id.len()),
            (&None, TEXT_MAX, MESSAGE_ID_MAX)
        );
        assert!(digest.to.len() > 100 && digest.to.iter().map(bytes_of).sum::<usize>() <= ADDRESSES_MAX);
        assert_eq!(Digest::of_message(b""), Digest::default());
    }

    #[test]
    fn keeps_the_newest_digests_within_its_bytes() {
        let cache = DigestCache::new();
        let digest = Arc::new(Digest { text: "x".repeat(TEXT_MAX), ..Digest::default() });
        let ids: Vec<_> = (0..600).map(Uuid::from_u128).collect();
        for id in &ids {
            cache.keep(*id, &digest);
            cache.keep(*id, &digest);
        }
        let kept = ids.iter().filter(|id| cache.get(**id).is_some()).count();
        assert!(kept < 600 && kept * digest.bytes() <= KEPT_BYTES, "{kept}");
        assert!(cache.get(ids[0]).is_none() && cache.get(ids[599]).is_some());
        assert_eq!(cache.0.lock().unwrap().order.len(), kept);
    }
}
