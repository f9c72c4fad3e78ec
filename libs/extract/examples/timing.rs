//! Prints how long extraction takes: median and p99 of the mails of the corpus, and the worst inputs.
//!
//! `cargo run --release -p tempmail-extract --example timing`

#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::time::{Duration, Instant};

use tempmail_extract::{Message, extract};

fn main() {
    let mails = mails();
    let mut times: Vec<Duration> = Vec::new();
    for round in 0..4 {
        for (subject, text, html) in &mails {
            let message = Message {
                subject,
                text: text.as_deref(),
                html: html.as_deref(),
                from_domain: Some("shop.example"),
            };
            let started = Instant::now();
            std::hint::black_box(extract(&message));
            // The first round reads the table of words.
            if round > 0 {
                times.push(started.elapsed());
            }
        }
    }
    times.sort_unstable();
    println!("{} mails: median {:?}, p99 {:?}", mails.len(), at(&times, 50), at(&times, 99));
    let (name, worst) = worst()
        .into_iter()
        .map(|(name, text)| (name, time(&text)))
        .max_by_key(|(_, time)| *time)
        .unwrap_or_default();
    println!("worst input of 10 MB ({name}): {worst:?}");
}

fn at(times: &[Duration], percent: usize) -> Duration {
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

fn time(text: &str) -> Duration {
    let message = Message { subject: text, text: Some(text), html: Some(text), from_domain: None };
    let started = Instant::now();
    std::hint::black_box(extract(&message));
    started.elapsed()
}

type Mail = (String, Option<String>, Option<String>);

/// The templates of the corpus as they are: of the length and make of its mails.
fn mails() -> Vec<Mail> {
    let mail = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).expect("a line of the corpus is JSON");
        let part = |name: &str| case[name].as_str().map(|part| part.replace("{code}", "482913"));
        (part("subject").unwrap_or_default(), part("text"), part("html"))
    };
    let made = include_str!("../corpus/made.jsonl").lines();
    made.chain(include_str!("../corpus/judged.jsonl").lines()).map(mail).collect()
}

/// Inputs that take longest.
fn worst() -> Vec<(&'static str, String)> {
    let repeat = |text: &str| text.repeat(10_000_000 / text.len());
    vec![
        ("digits", repeat("4")),
        ("codes", repeat("Your verification code is 482913.\n")),
        ("codes on lines", repeat("482913\n")),
        ("links", repeat("<a href=https://a.example/v?token=abc123>Confirm</a> ")),
        ("addresses", repeat("https://a.example/v?token=abc123\n")),
        ("nesting", repeat("<div>")),
        ("nested tables", repeat("<table><tr><td>")),
        (
            "styles",
            format!(
                "<style>{}</style>{}",
                ".a{color:red}".repeat(50_000),
                repeat("<p class=\"a b c d e f g\">x")
            ),
        ),
        ("attributes", format!("<p {}>", (0..900_000).map(|i| format!("a{i}=1 ")).collect::<String>())),
        ("zero width", repeat("4\u{200B}")),
        ("words", repeat("code ")),
        ("signs before codes", format!("{}{}", ";".repeat(128 << 10), repeat("4829;"))),
        ("dates", repeat("24 Nov 2026, order, ")),
        ("blank lines", format!("a{}", repeat("\n"))),
        ("items", format!("{}{}", "<b>".repeat(250), repeat("<li>"))),
    ]
}
