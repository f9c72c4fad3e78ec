//! The words of `docs/glossary.md` stand there once, and those of `docs/gone-words.tsv` nowhere.

use std::collections::BTreeSet;
use std::path::Path;

use super::{has_words, root, source_files};

/// How the names of files end that people read; those of the other scopes are among them.
const READ_BY_PEOPLE: &[&str] = &[".rs", ".sql", ".md", ".yaml", ".tpl", "tests/run"];

/// Where a word is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordScope {
    /// Name of a struct, enum, trait or alias.
    Type,
    /// Name of a function.
    Function,
    /// Name of a module, and of its file.
    Module,
    /// Identifier in the schema and its functions.
    Column,
    /// Whole words in anything that people read: source with its comments, documents, charts.
    Message,
}

/// A row of `docs/gone-words.tsv`.
struct GoneWord {
    scope: WordScope,
    /// Folder that it is gone from.
    folder: String,
    word: String,
    /// What is said now.
    now: String,
}

/// Reads the table: scope, folder, word, what is said now, apart by tabs.
fn gone_words() -> Vec<GoneWord> {
    let text = std::fs::read_to_string(root().join("docs/gone-words.tsv")).unwrap();
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let [scope, folder, word, now]: [&str; 4] =
            row.split('\t').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("four columns: {row}"));
        let scope = match scope {
            "type" => WordScope::Type,
            "function" => WordScope::Function,
            "module" => WordScope::Module,
            "column" => WordScope::Column,
            "message" => WordScope::Message,
            _ => panic!("an unknown scope: {row}"),
        };
        assert!(!word.is_empty() && !now.is_empty(), "{row}");
        GoneWord { scope, folder: folder.to_owned(), word: word.to_owned(), now: now.to_owned() }
    })
    .collect()
}

impl WordScope {
    /// Files that it is about.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Type | Self::Function | Self::Module => &[".rs"],
            Self::Column => &[".sql"],
            Self::Message => READ_BY_PEOPLE,
        }
    }

    /// Whether a file has the word.
    fn has(self, path: &Path, text: &str, word: &str) -> bool {
        match self {
            Self::Type => {
                let defines = |keyword| has_words(text, &format!("{keyword} {word}"));
                ["struct", "enum", "trait", "type"].into_iter().any(defines)
            }
            Self::Function => has_words(text, &format!("fn {word}")),
            Self::Module => {
                has_words(text, &format!("mod {word}")) || path.file_stem().is_some_and(|stem| stem == word)
            }
            Self::Column => has_words(&text.to_ascii_lowercase(), word),
            Self::Message => has_words(&as_prose(text), &word.to_lowercase()),
        }
    }
}

/// In lower case and on one line, without what marks comments and literals that go on.
fn as_prose(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim().trim_start_matches(['/', '!', '#', '*', '-']).trim_start();
        line.strip_suffix('\\').unwrap_or(line).trim_end()
    });
    lines.collect::<Vec<_>>().join(" ").to_lowercase()
}

#[test]
fn no_gone_word_is_back() {
    let words = gone_words();
    assert!(words.len() > 100, "the table is there");
    let mut back = Vec::new();
    for folder in words.iter().map(|word| word.folder.as_str()).collect::<BTreeSet<_>>() {
        for path in source_files(folder, READ_BY_PEOPLE) {
            if path.ends_with("docs/glossary.md") || path.ends_with("docs/interface.md") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("source is UTF-8");
            let name = path.to_string_lossy().into_owned();
            for word in words.iter().filter(|word| word.folder == folder) {
                let is_meant = word.scope.endings().iter().any(|ending| name.ends_with(ending));
                if is_meant && word.scope.has(&path, &text, &word.word) {
                    back.push(format!("{name}: {:?} `{}`: say `{}`", word.scope, word.word, word.now));
                }
            }
        }
    }
    assert!(back.is_empty(), "{back:#?}");
}

#[test]
fn the_glossary_has_each_word_once_and_none_that_is_gone() {
    let text = std::fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| **"));
    let words: Vec<String> =
        rows.map(|row| row.split("**").next().expect("a row begins with its word").to_lowercase()).collect();
    assert!(words.len() > 60, "the tables are there");
    let mut once = BTreeSet::new();
    for word in &words {
        assert!(once.insert(word), "{word} is there twice");
    }
    for gone in gone_words().into_iter().filter(|gone| gone.scope == WordScope::Message && gone.folder == ".")
    {
        assert!(!once.contains(&gone.word.to_lowercase()), "{} is gone", gone.word);
    }
}

#[test]
fn finds_names_and_phrases_as_whole_words() {
    let path = Path::new("desk.rs");
    assert!(WordScope::Type.has(path, "pub(crate) struct Desk {", "Desk"));
    assert!(!WordScope::Type.has(path, "struct DeskLamp;", "Desk"));
    assert!(WordScope::Function.has(path, "async fn make_true(&self)", "make_true"));
    assert!(!WordScope::Function.has(path, "self.make_true()", "make_true"));
    assert!(WordScope::Module.has(path, "", "desk"));
    assert!(WordScope::Module.has(Path::new("lib.rs"), "pub mod desk;", "desk"));
    assert!(WordScope::Column.has(Path::new("a.sql"), "UPDATE x SET thing = 1", "thing"));
    assert!(!WordScope::Column.has(Path::new("a.sql"), "everything", "thing"));
    let broken = "/// a row was put\n/// out of";
    assert!(WordScope::Message.has(path, broken, "put out of"));
    assert!(WordScope::Message.has(path, "\"it was Put \\\n    out of\"", "put out of"));
    assert!(!WordScope::Message.has(path, "output out of", "put out of"));
}
