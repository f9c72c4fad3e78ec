//! Records which documented responses were seen, in one file per process in the directory `$CONTRACT_SEEN`.
//! Without the variable nothing is recorded.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Stands for the code of a response that is not an error.
pub const NO_CODE: &str = "-";

/// Operation, status and code of a response.
pub type SeenResponse = (String, u16, String);

struct SeenLog {
    file: File,
    recorded: BTreeSet<SeenResponse>,
}

/// Records a response once.
pub(super) fn record(operation: &str, status: u16, code: &str) {
    static LOG: LazyLock<Option<Mutex<SeenLog>>> = LazyLock::new(|| {
        let directory = directory()?;
        fs::create_dir_all(&directory).expect("the directory of CONTRACT_SEEN can be created");
        let path = directory.join(std::process::id().to_string());
        let file = File::options().create(true).append(true).open(path);
        Some(Mutex::new(SeenLog {
            file: file.expect("a file in CONTRACT_SEEN can be written"),
            recorded: BTreeSet::new(),
        }))
    });
    let Some(record) = &*LOG else { return };
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    if record.recorded.insert((operation.to_owned(), status, code.to_owned())) {
        writeln!(record.file, "{operation} {status} {code}").expect("a file in CONTRACT_SEEN can be written");
    }
}

/// Everything that any process recorded; `None` without the variable.
///
/// # Panics
/// The files cannot be read.
pub fn recorded() -> Option<BTreeSet<SeenResponse>> {
    let directory = directory()?;
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(directory).expect("CONTRACT_SEEN is a directory") {
        let text = fs::read_to_string(entry.expect("it can be read").path()).expect("a record is text");
        seen.extend(text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [operation, status, code] = words[..] else { panic!("`{line}` is not a record") };
            (operation.to_owned(), status.parse().expect("a status is a number"), code.to_owned())
        }));
    }
    Some(seen)
}

fn directory() -> Option<PathBuf> {
    std::env::var_os("CONTRACT_SEEN").filter(|value| !value.is_empty()).map(PathBuf::from)
}
