//! The neighbour `large`: a peer that sends mails as large as they may be, one after the other over
//! each of its connections, each to an address of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::DOMAIN;
use super::session::{OutcomeCounts, SmtpSender};

/// Octets a mail, header section included: a little less than the limit of 26,214,400.
const SIZE: usize = 26_214_400 - 8_192;
/// Octets of a line of base64, and of what it stands for.
const LINE: usize = 76;
const CODED: usize = 57;

/// The peer.
#[derive(Debug)]
pub struct LargeMailSender {
    smtp: SocketAddr,
    connections: usize,
    mail: Arc<Vec<u8>>,
    next: Arc<AtomicUsize>,
}

impl LargeMailSender {
    /// Makes the mail that it sends.
    pub fn new(smtp: SocketAddr, connections: usize) -> Self {
        Self { smtp, connections, mail: Arc::new(mail()), next: Arc::new(AtomicUsize::new(0)) }
    }

    /// Begins mails until then and waits for the answers to all; what came of it.
    ///
    /// # Errors
    /// A task of it panicked.
    pub async fn run(&self, until: Instant) -> anyhow::Result<String> {
        let began = Instant::now();
        let mut connections = JoinSet::new();
        for _ in 0..self.connections {
            let (smtp, mail, next) = (self.smtp, Arc::clone(&self.mail), Arc::clone(&self.next));
            connections.spawn(async move {
                let (mut sender, mut answers) = (SmtpSender::new(smtp), OutcomeCounts::default());
                while Instant::now() < until {
                    let recipient = format!("large{}@{DOMAIN}", next.fetch_add(1, Ordering::Relaxed));
                    let delivery = sender.send(&[recipient], &mail).await;
                    answers.add(delivery);
                    if !delivery.outcome.is_accepted() {
                        // A refusal before the data costs nothing: not to turn in a circle.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
                answers
            });
        }
        let mut all = OutcomeCounts::default();
        while let Some(answers) = connections.join_next().await {
            all.merge(answers?);
        }
        let rate = (all.accepted() * SIZE) as f64 / 1e6 / began.elapsed().as_secs_f64();
        Ok(format!("mails of {SIZE} octets: {all}; {rate:.0} MB/s accepted"))
    }
}

/// A short text and an attachment of random octets, end of data included. No line starts with a dot.
fn mail() -> Vec<u8> {
    let head = format!(
        "From: Neighbour <sender@bench.example>\r\n\
         To: <large@{DOMAIN}>\r\n\
         Subject: A large attachment\r\n\
         Date: Sat, 21 Nov 2026 10:00:00 +0000\r\n\
         Message-ID: <large@bench.example>\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"part\"\r\n\r\n\
         --part\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n\
         See the attachment.\r\n\
         --part\r\n\
         Content-Type: application/octet-stream\r\n\
         Content-Disposition: attachment; filename=\"random.bin\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n"
    );
    let tail = "--part--\r\n";
    let lines = (SIZE - head.len() - tail.len()) / (LINE + 2);
    let mut octets = vec![0; lines * CODED];
    StdRng::seed_from_u64(26_214_400).fill_bytes(&mut octets);
    let mut mail = Vec::with_capacity(SIZE + 3);
    mail.extend_from_slice(head.as_bytes());
    for line in STANDARD.encode(octets).as_bytes().chunks(LINE) {
        mail.extend_from_slice(line);
        mail.extend_from_slice(b"\r\n");
    }
    mail.extend_from_slice(tail.as_bytes());
    mail.extend_from_slice(b".\r\n");
    mail
}
