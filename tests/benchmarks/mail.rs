//! What the generator sends: plain text that compresses about as well as real notification
//! mail (two to one), different in every mail.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Different bodies to choose from; every mail has a header section of its own before them.
const BODIES: usize = 64;
const LINE: usize = 72;

/// Ready-made bodies, so that writing a mail costs the generator a copy.
#[derive(Debug, Clone)]
pub struct Mails {
    bodies: Vec<String>,
    sender: &'static str,
}

impl Mails {
    /// Mails of about `size` octets, header section included. The same size gives the same mails.
    pub fn of_size(size: usize) -> Self {
        let mut random = StdRng::seed_from_u64(3_072);
        let words: Vec<String> = (0..2_000).map(|_| word(&mut random)).collect();
        let room = size.saturating_sub(header(0, "sender@bench.example", "0@inbox.localhost").len());
        let bodies = (0..BODIES).map(|_| body(&mut random, &words, room)).collect();
        Self { bodies, sender: "sender@bench.example" }
    }

    /// The reverse-path of all of them.
    pub fn sender(&self) -> &'static str {
        self.sender
    }

    /// Appends mail `number` to `recipient`, end of data included. No line starts with a dot.
    pub fn write(&self, out: &mut Vec<u8>, number: usize, recipient: &str) {
        out.extend_from_slice(header(number, self.sender, recipient).as_bytes());
        out.extend_from_slice(self.bodies[number % BODIES].as_bytes());
        out.extend_from_slice(b".\r\n");
    }
}

/// What stands before the number in the subject of a mail.
pub const SUBJECT: &str = "Your confirmation number ";

/// The numbers of the mails whose subjects are somewhere in `text`.
pub fn numbers_in(text: &str) -> impl Iterator<Item = usize> {
    text.split(SUBJECT).skip(1).filter_map(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    })
}

fn header(number: usize, sender: &str, recipient: &str) -> String {
    format!(
        "From: Load Generator <{sender}>\r\n\
         To: <{recipient}>\r\n\
         Subject: {SUBJECT}{number}\r\n\
         Date: Sat, 21 Nov 2026 10:00:00 +0000\r\n\
         Message-ID: <{number}.{:08x}@bench.example>\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n",
        number.wrapping_mul(2_654_435_761) & 0xffff_ffff
    )
}

fn word(random: &mut StdRng) -> String {
    let length = random.random_range(2..10);
    (0..length).map(|_| char::from(b'a' + random.random_range(0..26u8))).collect()
}

/// Sentences with a link of 32 random hex digits now and then, as such mails have them.
fn body(random: &mut StdRng, words: &[String], room: usize) -> String {
    let mut text = String::with_capacity(room + LINE);
    let mut line = 0;
    while text.len() + 2 < room {
        let next = if random.random_range(0..40) == 0 {
            format!("https://bench.example/confirm/{:032x}", random.random::<u128>())
        } else {
            words[random.random_range(0..words.len())].clone()
        };
        if line + next.len() > LINE {
            text.push_str("\r\n");
            line = 0;
        } else if line > 0 {
            text.push(' ');
        }
        line += next.len() + 1;
        text.push_str(&next);
    }
    text.truncate(room.saturating_sub(2));
    // Not to leave half of a line's end.
    text.truncate(text.trim_end().len());
    text.push_str("\r\n");
    text
}
