//! The files of the corpus: families of mails by templates.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// A half of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// What extraction was made with.
    Made,
    /// What it is judged by.
    Judged,
}

/// A file: mails of one kind in one language.
#[derive(Debug, Deserialize)]
pub struct Family {
    pub family: String,
    /// BCP 47.
    pub language: String,
    /// What might be taken for a code or an action link by mistake.
    pub trap: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for those who read the file")]
    note: String,
    pub mails: Vec<Template>,
}

/// A mail with placeholders, and what each row puts there.
#[derive(Debug, Deserialize)]
pub struct Template {
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

/// The families of a half, in the order of their files; none if there is no such folder.
pub fn families(half: Half) -> Vec<Family> {
    let folder = match half {
        Half::Made => "made",
        Half::Judged => "judged",
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a family is UTF-8");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.iter().map(read).collect()
}

impl Template {
    /// The mails of the template: one a row, or one if there are no rows.
    pub fn expand(&self) -> Vec<Mail> {
        let none = [BTreeMap::new()];
        let rows = if self.rows.is_empty() { &none[..] } else { &self.rows };
        rows.iter().map(|row| self.expand_row(row)).collect()
    }

    fn expand_row(&self, row: &BTreeMap<String, String>) -> Mail {
        let fill = |text: &String| fill(text, row);
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
fn fill(text: &str, row: &BTreeMap<String, String>) -> String {
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
        let name = name.unwrap_or_else(|| panic!("a single brace: {rest}"));
        filled.push_str(row.get(name).unwrap_or_else(|| panic!("no {name} in a row of: {text}")));
        rest = &rest[name.len() + 2..];
    }
    filled.push_str(rest);
    filled
}

impl Mail {
    /// The domain of the author.
    pub fn author_domain(&self) -> Option<&str> {
        self.from.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches('>'))
    }
}
