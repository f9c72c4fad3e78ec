//! The cases of the corpus: a line of JSON each, with the template of a mail.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A half of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// What extraction was made with.
    Made,
    /// What it is judged by.
    Judged,
}

/// A mail with placeholders, what each row puts there, and what is to be found.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// The file and the line, for messages.
    #[serde(skip)]
    place: String,
    family: String,
    /// BCP 47.
    pub language: String,
    /// What might be taken for a code or an action link by mistake.
    pub trap: Option<String>,
    from: String,
    subject: String,
    text: Option<String>,
    html: Option<String>,
    #[serde(default)]
    rows: Vec<BTreeMap<String, String>>,
    codes: Vec<String>,
    links: Vec<ExpectedLink>,
}

/// A link that is right.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedLink {
    pub url: String,
    pub kind: String,
}

/// An expanded mail.
#[derive(Debug)]
pub struct Mail {
    pub from: String,
    pub subject: String,
    pub text: Option<String>,
    pub html: Option<String>,
    pub codes: Vec<String>,
    pub links: Vec<ExpectedLink>,
}

/// The cases of a half, in the order of its file.
pub fn cases(half: Half) -> impl Iterator<Item = Case> {
    let (file, text) = match half {
        Half::Made => ("made.jsonl", include_str!("../../corpus/made.jsonl")),
        Half::Judged => ("judged.jsonl", include_str!("../../corpus/judged.jsonl")),
    };
    text.lines().enumerate().map(move |(index, line)| {
        let place = format!("{file}:{}", index + 1);
        let case: Case = serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        Case { place, ..case }
    })
}

impl Case {
    /// Where the case is, and of which family.
    pub fn name(&self) -> String {
        format!("{} ({})", self.place, self.family)
    }

    /// The mails of the case: one a row, or one if there are no rows.
    pub fn expand(&self) -> Vec<Mail> {
        let none = [BTreeMap::new()];
        let rows = if self.rows.is_empty() { &none[..] } else { &self.rows };
        rows.iter().map(|row| self.expand_row(row)).collect()
    }

    fn expand_row(&self, row: &BTreeMap<String, String>) -> Mail {
        let fill = |text: &String| fill(text, row).unwrap_or_else(|error| panic!("{}: {error}", self.name()));
        let link = |link: &ExpectedLink| ExpectedLink { url: fill(&link.url), kind: link.kind.clone() };
        Mail {
            from: fill(&self.from),
            subject: fill(&self.subject),
            text: self.text.as_ref().map(fill),
            html: self.html.as_ref().map(fill),
            codes: self.codes.iter().map(fill).collect(),
            links: self.links.iter().map(link).collect(),
        }
    }
}

/// Replaces `{name}` by the row's value; `{{` and `}}` are literal braces.
fn fill(text: &str, row: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            filled.push_str(&rest[..1]);
            rest = &rest[2..];
            continue;
        }
        let name = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
        let name = name.ok_or_else(|| format!("a single brace: {rest}"))?;
        filled.push_str(row.get(name).ok_or_else(|| format!("no {name} in the row {row:?}"))?);
        rest = &rest[name.len() + 2..];
    }
    filled.push_str(rest);
    Ok(filled)
}

impl Mail {
    /// The domain of the author.
    pub fn author_domain(&self) -> Option<&str> {
        self.from.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches('>'))
    }
}
