//! Mails that are nearly as large as they may be, without the end of data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// Bytes of a mail: a little less than `smtp.max_message_bytes`, since trace fields are added.
pub(super) const SIZE: usize = 25_000_000;
/// Characters of a line of base64, and bytes that it stands for.
const LINE: (usize, usize) = (76, 57);

/// A text that compresses to nearly nothing.
pub(super) fn compressible() -> Vec<u8> {
    let mut mail = b"From: <attacker@client.example>\r\nSubject: large\r\n\r\n".to_vec();
    let line = b"All work and no play makes Jack a dull boy.\r\n";
    while mail.len() + line.len() <= SIZE {
        mail.extend_from_slice(line);
    }
    mail
}

/// A text and an attachment of random bytes.
pub(super) fn incompressible() -> Vec<u8> {
    let head = "From: <attacker@client.example>\r\nSubject: large\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"part\"\r\n\r\n\
         --part\r\nContent-Type: text/plain\r\n\r\nSee the attachment.\r\n\
         --part\r\nContent-Type: application/octet-stream\r\n\
         Content-Disposition: attachment; filename=\"random.bin\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n";
    let tail = "--part--\r\n";
    let lines = (SIZE - head.len() - tail.len()) / (LINE.0 + 2);
    let mut bytes = vec![0; lines * LINE.1];
    StdRng::seed_from_u64(25).fill_bytes(&mut bytes);
    let mut mail = Vec::with_capacity(SIZE);
    mail.extend_from_slice(head.as_bytes());
    for line in STANDARD.encode(bytes).as_bytes().chunks(LINE.0) {
        mail.extend_from_slice(line);
        mail.extend_from_slice(b"\r\n");
    }
    mail.extend_from_slice(tail.as_bytes());
    mail
}

/// A large text and a large attachment, so that the message, its data and its attachment are slow to read.
pub(super) fn text_and_attachment() -> Vec<u8> {
    let head = "From: <attacker@client.example>\r\nSubject: large\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"part\"\r\n\r\n\
         --part\r\nContent-Type: text/plain\r\n\r\n";
    let between =
        "--part\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=\"a.csv\"\r\n\r\n";
    let line = "All work and no play makes Jack a dull boy.\r\n";
    let half = line.repeat((SIZE - 1_024) / 2 / line.len());
    format!("{head}{half}{between}{half}--part--\r\n").into_bytes()
}
