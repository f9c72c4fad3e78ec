//! A received mail becomes what is stored: trace field, summary, compressed data, ids. This
//! runs in the session's task, so that all cores share it; the batcher only collects.

use std::cell::RefCell;
use std::net::IpAddr;

use jiff::Timestamp;
use tempmail_model::address::{RecipientAddress, ReservedLocalParts};
use tempmail_model::id::new_id;
use tempmail_model::trace::{Protocol, ReceivedField, for_clause, return_path};
use tempmail_store::{NewMail, NewMessage, RawData};

use crate::summary::Summary;

/// Data from this size on is parsed and compressed off the async threads.
const BLOCKING_FROM: usize = 128 << 10;

/// zstd's fastest level that still halves ordinary mail: octets written are what bounds ingest.
const ZSTD_LEVEL: i32 = 1;

pub(super) struct Parts {
    pub(super) peer: IpAddr,
    pub(super) hello: String,
    pub(super) protocol: Protocol,
    pub(super) sender: String,
    pub(super) recipients: Vec<RecipientAddress>,
    pub(super) data: Vec<u8>,
}

/// `None` where the data can't be compressed or its size can't be counted: never for a mail
/// within the bounds of SMTP.
pub(super) async fn prepare(
    mut parts: Parts,
    hostname: &str,
    reserved: &ReservedLocalParts,
    now: Timestamp,
) -> Option<NewMail> {
    let id = new_id(now);
    let received = ReceivedField::new(&parts.hello, parts.peer, hostname, parts.protocol, id, now);
    let data = std::mem::take(&mut parts.data);
    let data_len = data.len();
    let field = received.text.clone();
    let (summary, raw) = if data_len < BLOCKING_FROM {
        (Summary::of(&data), compress(&field, &data)?)
    } else {
        tokio::task::spawn_blocking(move || Some((Summary::of(&data), compress(&field, &data)?)))
            .await
            .ok()??
    };
    let shared_size = return_path(&parts.sender).len() + received.text.len() + data_len;
    let single_recipient = parts.recipients.len() == 1;
    let recipients = parts
        .recipients
        .into_iter()
        .map(|address| {
            let size = shared_size + if single_recipient { for_clause(address.as_str()).len() } else { 0 };
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
        sender: parts.sender.replace('\0', "\u{fffd}"),
        from_text: summary.from_text,
        from_email: summary.from_email,
        subject: summary.subject,
        preview: summary.preview,
        recipients,
    })
}

/// The trace field and the data as one zstd frame.
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
        let compressed = compressor.as_mut()?.compress(whole).ok();
        // A large mail must not leave its size behind in every thread.
        if whole.capacity() > BLOCKING_FROM * 2 {
            *whole = Vec::new();
        }
        compressed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(mail: &NewMail) -> Vec<u8> {
        let RawData::Inline(raw) = &mail.raw else { panic!("prepare stores nothing ahead") };
        zstd::decode_all(raw.as_slice()).unwrap()
    }

    #[tokio::test]
    async fn sizes_are_what_each_recipient_reads() {
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        let parts = |recipients: &[&str]| Parts {
            peer: "192.0.2.1".parse().unwrap(),
            hello: "client.example".into(),
            protocol: Protocol::Esmtp,
            sender: "s@example.org".into(),
            recipients: recipients.iter().map(|to| RecipientAddress::parse(to).unwrap()).collect(),
            data: b"Subject: x\r\n\r\nbody\r\n".to_vec(),
        };
        let reserved = ReservedLocalParts::new(ReservedLocalParts::DEFAULT);
        let single = prepare(parts(&["a@b.example"]), "mx.example", &reserved, now).await.unwrap();
        let text = plain(&single);
        let expected =
            "Return-Path: <s@example.org>\r\n".len() + text.len() + "\r\n\tfor <a@b.example>".len();
        assert_eq!(usize::try_from(single.recipients[0].size).unwrap(), expected);
        assert_eq!(&text[usize::try_from(single.for_clause_offset).unwrap()..][..1], b";");

        let two =
            prepare(parts(&["a@b.example", "c@b.example"]), "mx.example", &reserved, now).await.unwrap();
        let text = plain(&two);
        let expected = "Return-Path: <s@example.org>\r\n".len() + text.len();
        assert!(two.recipients.iter().all(|to| usize::try_from(to.size).unwrap() == expected));
    }
}
