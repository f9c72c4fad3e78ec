//! Prepares a received mail for the store: trace field, summary, compressed data, ids. It runs in
//! the session's task, so that all cores share the work and the batcher only collects.

use std::cell::RefCell;
use std::io::{self, Write as _};

use jiff::Timestamp;
use tempmail_model::address::ReservedLocalParts;
use tempmail_model::id::new_id;
use tempmail_model::trace::{ReceivedField, for_clause, return_path};
use tempmail_store::{NewMail, NewMessage, RawData};

use super::large_mail::SizeClass;
use super::summary::summarize;
use crate::smtp::{AcceptedRecipient, ReceivedMail};

/// zstd's fastest level that halves ordinary mail: written bytes limit the throughput.
const ZSTD_LEVEL: i32 = 1;

/// Prepares a mail; takes its data, sender and recipients, and leaves its memory permit. `None` if the
/// data can't be compressed or its size exceeds the column: never for a mail within the limits of SMTP.
pub(super) async fn prepare(
    mail: &mut ReceivedMail,
    hostname: &str,
    reserved: &ReservedLocalParts,
    now: Timestamp,
) -> Option<NewMail> {
    let id = new_id(now);
    let received = ReceivedField::new(&mail.hello, mail.peer.address, hostname, mail.protocol, id, now);
    let data = std::mem::take(&mut mail.data);
    let data_len = data.len();
    let field = received.text.clone();
    let (summary, raw) = if SizeClass::of(data_len) == SizeClass::Small {
        (summarize(&data), compress(&field, &data)?)
    } else {
        let prepared = tokio::task::spawn_blocking(move || {
            Some((summarize(&data), compress_stream(&field, &data).ok()?))
        });
        prepared.await.ok()??
    };
    let common_size = return_path(&mail.sender).len() + received.text.len() + data_len;
    let single_recipient = mail.recipients.len() == 1;
    let recipients = std::mem::take(&mut mail.recipients)
        .into_iter()
        .map(|AcceptedRecipient { address, .. }| {
            let size = common_size + if single_recipient { for_clause(address.as_str()).len() } else { 0 };
            Some(NewMessage {
                id: new_id(now),
                reserved: reserved.reservation_of(address.base_local_part()),
                size: i32::try_from(size).ok()?,
                address,
            })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(NewMail {
        id,
        raw: RawData::Inline(raw),
        for_clause_offset: i32::try_from(received.for_clause_offset).ok()?,
        sender: mail.sender.replace('\0', "\u{fffd}"),
        summary,
        recipients,
    })
}

/// The trace field and the data of a small mail as one zstd frame.
fn compress(field: &str, data: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        static SCRATCH: RefCell<(Option<zstd::bulk::Compressor<'static>>, Vec<u8>)> =
            const { RefCell::new((None, Vec::new())) };
    }
    SCRATCH.with_borrow_mut(|(compressor, whole)| {
        if compressor.is_none() {
            *compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        whole.clear();
        whole.extend_from_slice(field.as_bytes());
        whole.extend_from_slice(data);
        compressor.as_mut()?.compress(whole).ok()
    })
}

/// The same for a mail that is not small, without a copy of its data.
fn compress_stream(field: &str, data: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
    encoder.set_pledged_src_size(Some((field.len() + data.len()) as u64))?;
    encoder.write_all(field.as_bytes())?;
    encoder.write_all(data)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use tempmail_model::address::RecipientAddress;
    use tempmail_model::trace::Protocol;

    use super::*;
    use crate::memory::MemoryBudget;
    use crate::smtp::Peer;

    fn decompressed(mail: &NewMail) -> Vec<u8> {
        let RawData::Inline(raw) = &mail.raw else { panic!("prepare stores nothing") };
        zstd::decode_all(raw.as_slice()).unwrap()
    }

    #[tokio::test]
    async fn counts_the_bytes_that_each_recipient_reads() {
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let received = |recipients: &[&str]| ReceivedMail {
            peer: Peer { address: "192.0.2.1".parse().unwrap(), client: None },
            hello: "client.example".into(),
            protocol: Protocol::Esmtp,
            sender: "s@example.org".into(),
            recipients: recipients
                .iter()
                .map(|to| AcceptedRecipient { address: RecipientAddress::parse(to).unwrap(), tenant: None })
                .collect(),
            data: b"Subject: x\r\n\r\nbody\r\n".to_vec(),
            memory: MemoryBudget::of(1 << 20).open(None, Vec::new()).unwrap().finish().1,
        };
        let reserved = ReservedLocalParts::new(ReservedLocalParts::DEFAULT);
        let single = prepare(&mut received(&["a@b.example"]), "mx.example", &reserved, now).await.unwrap();
        let text = decompressed(&single);
        let expected =
            "Return-Path: <s@example.org>\r\n".len() + text.len() + "\r\n\tfor <a@b.example>".len();
        assert_eq!(usize::try_from(single.recipients[0].size).unwrap(), expected);
        assert_eq!(&text[usize::try_from(single.for_clause_offset).unwrap()..][..1], b";");

        let two = prepare(&mut received(&["a@b.example", "c@b.example"]), "mx.example", &reserved, now)
            .await
            .unwrap();
        let text = decompressed(&two);
        let expected = "Return-Path: <s@example.org>\r\n".len() + text.len();
        assert!(two.recipients.iter().all(|to| usize::try_from(to.size).unwrap() == expected));
    }
}
