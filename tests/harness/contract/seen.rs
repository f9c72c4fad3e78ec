//! What was seen of the document, kept in files of the directory `$CONTRACT_SEEN`, one a
//! process. Without the variable nothing is kept.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// In the place of a code, for answers that are no errors.
pub const NOTHING: &str = "-";

/// Operation, status and code of an answer.
pub type Seen = (String, u16, String);

struct Record {
    file: File,
    kept: BTreeSet<Seen>,
}

/// Keeps an answer, once.
pub(super) fn record(operation: &str, status: u16, code: &str) {
    static RECORD: LazyLock<Option<Mutex<Record>>> = LazyLock::new(|| {
        let directory = directory()?;
        fs::create_dir_all(&directory).expect("the directory of CONTRACT_SEEN can be made");
        let path = directory.join(std::process::id().to_string());
        let file = File::options().create(true).append(true).open(path);
        Some(Mutex::new(Record {
            file: file.expect("a file in CONTRACT_SEEN can be written"),
            kept: BTreeSet::new(),
        }))
    });
    let Some(record) = &*RECORD else { return };
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    if record.kept.insert((operation.to_owned(), status, code.to_owned())) {
        writeln!(record.file, "{operation} {status} {code}").expect("a file in CONTRACT_SEEN can be written");
    }
}

/// Everything that was kept by any process; `None` without the variable.
///
/// # Panics
/// The files can't be read.
pub fn recorded() -> Option<BTreeSet<Seen>> {
    let directory = directory()?;
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(directory).expect("CONTRACT_SEEN is a directory") {
        let text = fs::read_to_string(entry.expect("it can be read").path()).expect("a record is text");
        seen.extend(text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [operation, status, code] = words[..] else { panic!("`{line}` is no record") };
            (operation.to_owned(), status.parse().expect("a status is a number"), code.to_owned())
        }));
    }
    Some(seen)
}

fn directory() -> Option<PathBuf> {
    std::env::var_os("CONTRACT_SEEN").filter(|value| !value.is_empty()).map(PathBuf::from)
}
