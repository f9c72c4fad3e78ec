//! Unusual and hostile mails. Small ones are files in `tests/fixtures`, named for what is unusual; large ones are
//! generated here.

use std::path::Path;

/// A mail of `tests/fixtures` as it is sent.
///
/// # Panics
/// There is no such fixture.
pub fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("{name}.eml"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of all mails in `tests/fixtures`.
///
/// # Panics
/// The folder does not exist.
pub fn fixture_names() -> Vec<String> {
    names_in("fixtures")
}

/// The names of all mails in `tests/fixtures/hostile`, which try to run, load or send something.
///
/// # Panics
/// The folder does not exist.
pub fn hostile_names() -> Vec<String> {
    names_in("fixtures/hostile").iter().map(|name| format!("hostile/{name}")).collect()
}

/// The names of all mails in `tests/fixtures/orders`, which try to make a language model do something.
///
/// # Panics
/// The folder does not exist.
pub fn order_names() -> Vec<String> {
    names_in("fixtures/orders").iter().map(|name| format!("orders/{name}")).collect()
}

fn names_in(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder exists")
        .filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(".eml").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// The first header fields of every generated mail.
fn start(subject: &str) -> String {
    format!("From: Ada <ada@sender.test>\r\nTo: someone@inbox.localhost\r\nSubject: {subject}\r\n")
}

/// A mail of exactly so many bytes, in lines of 76.
///
/// # Panics
/// Fewer than 200.
pub fn of_size(bytes: usize) -> Vec<u8> {
    let mut mail = format!("{}\r\n", start("As large as asked for")).into_bytes();
    assert!(bytes >= 200 && mail.len() < 200, "too small for the header section");
    while bytes - mail.len() > 78 + 2 {
        mail.extend_from_slice(&[b'0'; 76]);
        mail.extend_from_slice(b"\r\n");
    }
    mail.resize(bytes - 2, b'1');
    mail.extend_from_slice(b"\r\n");
    mail
}

/// Nested multiparts, so many levels deep, around a text.
pub fn deep(levels: usize) -> Vec<u8> {
    let mut mail = start("Very deep");
    for level in 0..levels {
        mail.push_str(&format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n"));
    }
    mail.push_str("Content-Type: text/plain\r\n\r\nAt the bottom.\r\n");
    for level in (0..levels).rev() {
        mail.push_str(&format!("--b{level}--\r\n"));
    }
    mail.into_bytes()
}

/// Nested messages, so many levels deep.
pub fn deep_messages(levels: usize) -> Vec<u8> {
    let mut mail = String::new();
    for _ in 0..levels {
        mail.push_str(&start("A message"));
        mail.push_str("Content-Type: message/rfc822\r\n\r\n");
    }
    mail.push_str(&start("The innermost"));
    mail.push_str("\r\nAt the bottom.\r\n");
    mail.into_bytes()
}

/// A text and so many small parts.
pub fn many_parts(parts: usize) -> Vec<u8> {
    let mut mail = start("Very wide");
    mail.push_str("Content-Type: multipart/mixed; boundary=b\r\n\r\n");
    mail.push_str("--b\r\nContent-Type: text/plain\r\n\r\nThe first part.\r\n");
    for part in 0..parts {
        mail.push_str(&format!("--b\r\nContent-Type: application/octet-stream\r\n\r\n{part}\r\n"));
    }
    mail.push_str("--b--\r\n");
    mail.into_bytes()
}

/// A mail with a Subject of so many bytes, folded into lines of 76.
pub fn long_subject(bytes: usize) -> Vec<u8> {
    let lines = vec!["s".repeat(74); bytes / 77 + 1];
    let mut mail = start(&lines.join("\r\n  "));
    mail.push_str("\r\nx\r\n");
    mail.into_bytes()
}

/// A Subject of so many bytes, of encoded words of one character each.
pub fn encoded_word_flood(bytes: usize) -> Vec<u8> {
    let word = "=?utf-8?Q?=C3=A9?=";
    let words = vec![word; bytes / (word.len() + 3)];
    let mut mail = start(&words.join("\r\n "));
    mail.push_str("\r\nx\r\n");
    mail.into_bytes()
}

/// A To field of so many addresses.
pub fn address_flood(addresses: usize) -> Vec<u8> {
    let list: Vec<String> = (0..addresses).map(|n| format!("a{n}@b.test")).collect();
    let from = "From: Ada <ada@sender.test>\r\nSubject: Many readers\r\n";
    format!("{from}To: {}\r\n\r\nx\r\n", list.join(",\r\n ")).into_bytes()
}

/// A mail of exactly so many header fields.
pub fn header_fields(fields: usize) -> Vec<u8> {
    let mut mail = start("Many fields");
    for field in 3..fields {
        mail.push_str(&format!("X-Field-{field}: x\r\n"));
    }
    mail.push_str("\r\nx\r\n");
    mail.into_bytes()
}

/// A mail whose header section has exactly so many bytes, without the empty line.
///
/// # Panics
/// Too few.
pub fn header_section(bytes: usize) -> Vec<u8> {
    let mut mail = start("A long header section");
    let line = format!("X-Filler: {}\r\n", "f".repeat(900));
    while mail.len() + 2 * line.len() < bytes {
        mail.push_str(&line);
    }
    let left = bytes - mail.len() - "X-Last: \r\n".len();
    mail.push_str(&format!("X-Last: {}\r\n", "l".repeat(left)));
    assert_eq!(mail.len(), bytes);
    mail.push_str("\r\nx\r\n");
    mail.into_bytes()
}

/// HTML of so many nested elements.
pub fn deep_html(elements: usize) -> Vec<u8> {
    let mut mail = start("Deep markup");
    mail.push_str("Content-Type: text/html; charset=utf-8\r\n\r\n");
    for _ in 0..elements {
        mail.push_str("<div>\r\n");
    }
    mail.push_str("At the bottom.\r\n");
    mail.into_bytes()
}
