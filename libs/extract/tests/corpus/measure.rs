//! Counting what is found, missed and wrong.

use std::collections::BTreeMap;
use std::fmt::Write;

use tempmail_extract::{Extraction, Message, extract};

use crate::case::{Case, Mail};

/// How often something was right.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub found: u32,
    pub wrong: u32,
    pub missed: u32,
}

/// Codes and links.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pair {
    pub mails: u32,
    pub codes: Tally,
    pub links: Tally,
}

/// The outcome of a half.
#[derive(Debug, Default)]
pub struct Measure {
    pub mails: usize,
    pub mails_with_code: usize,
    pub all: Pair,
    pub by_language: BTreeMap<String, Pair>,
    pub by_trap: BTreeMap<String, Pair>,
    pub mistakes: Vec<String>,
}

impl Tally {
    pub fn precision(&self) -> f64 {
        ratio(self.found, self.found + self.wrong)
    }

    pub fn recall(&self) -> f64 {
        ratio(self.found, self.found + self.missed)
    }

    fn add(&mut self, other: Self) {
        self.found += other.found;
        self.wrong += other.wrong;
        self.missed += other.missed;
    }
}

fn ratio(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

impl Pair {
    fn add(&mut self, other: Self) {
        self.mails += other.mails;
        self.codes.add(other.codes);
        self.links.add(other.links);
    }
}

impl Measure {
    pub fn add_case(&mut self, case: &Case) {
        let name = case.name();
        let trap = case.trap.as_deref().unwrap_or("none");
        for mail in case.expand() {
            let pair = self.judge(&name, &mail);
            self.mails += 1;
            self.mails_with_code += usize::from(!mail.codes.is_empty());
            self.all.add(pair);
            self.by_language.entry(case.language.clone()).or_default().add(pair);
            self.by_trap.entry(trap.to_owned()).or_default().add(pair);
        }
    }

    fn judge(&mut self, name: &str, mail: &Mail) -> Pair {
        let message = Message {
            subject: &mail.subject,
            text: mail.text.as_deref(),
            html: mail.html.as_deref(),
            from_domain: mail.author_domain(),
        };
        let extraction = extract(&message);
        let codes: Vec<String> = extraction.codes.iter().map(|code| code.code.clone()).collect();
        let link = |url: &str, kind: &str| format!("{kind} {url}");
        let links: Vec<String> =
            extraction.links.iter().map(|found| link(&found.url, found.kind.as_str())).collect();
        let expected: Vec<String> = mail.links.iter().map(|right| link(&right.url, &right.kind)).collect();
        let pair = Pair { mails: 1, codes: compare(&mail.codes, &codes), links: compare(&expected, &links) };
        if pair.codes.wrong + pair.codes.missed + pair.links.wrong + pair.links.missed > 0 {
            self.mistakes.push(describe(name, mail, &expected, &extraction));
        }
        pair
    }

    pub fn summary(&self) -> String {
        let (codes, links) = (&self.all.codes, &self.all.links);
        format!(
            "{} mails; codes: precision {:.4}, recall {:.4} ({codes:?}); links: precision {:.4}, recall {:.4} ({links:?})",
            self.mails,
            codes.precision(),
            codes.recall(),
            links.precision(),
            links.recall()
        )
    }
}

fn compare(right: &[String], found: &[String]) -> Tally {
    let count = |count: usize| u32::try_from(count).expect("a mail has few codes and links");
    let hits = found.iter().filter(|found| right.contains(found)).count();
    Tally {
        found: count(hits),
        wrong: count(found.len() - hits),
        missed: count(right.len() - hits.min(right.len())),
    }
}

fn describe(name: &str, mail: &Mail, links: &[String], extraction: &Extraction) -> String {
    let mut text = format!("--- {name}: {} | {}", mail.from, mail.subject);
    let codes: Vec<_> =
        extraction.codes.iter().map(|code| (&code.code, code.confidence, code.reason)).collect();
    let found: Vec<_> = extraction
        .links
        .iter()
        .map(|link| (link.kind.as_str(), &link.url, link.confidence, link.reason))
        .collect();
    let _ = write!(text, "\n  codes: {:?}, found {codes:?}\n  links: {links:?}, found {found:?}", mail.codes);
    if std::env::var_os("VERBOSE").is_some() {
        let _ = write!(text, "\n  text: {:?}\n  html: {:?}", mail.text, mail.html);
    }
    text
}
