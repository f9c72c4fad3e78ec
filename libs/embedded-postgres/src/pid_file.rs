//! `postmaster.pid`, which Postgres writes into its data directory.

use std::fs;
use std::path::{Path, PathBuf};

/// The content of `postmaster.pid`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    /// The postmaster.
    pub pid: u32,
    /// Its socket directory, if it has one.
    pub socket: Option<PathBuf>,
    /// Whether it accepts connections.
    pub ready: bool,
}

impl PidFile {
    /// Reads the file of a data directory; `None` if there is none or it can't be parsed.
    pub fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    /// Lines: pid, data directory, start, port, socket directory, address, memory, status.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok()?,
            socket: lines.get(4).filter(|line| !line.is_empty()).map(PathBuf::from),
            ready: lines.get(7) == Some(&"ready"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_pid_file() {
        let text = "4711\n/data\n1700000000\n5432\n/run/socket\n\n  123  456\nready   \n";
        let file = PidFile { pid: 4711, socket: Some("/run/socket".into()), ready: true };
        assert_eq!(PidFile::parse(text), Some(file));
        assert_eq!(PidFile::parse("4711\n"), Some(PidFile { pid: 4711, socket: None, ready: false }));
        assert_eq!(PidFile::parse("torn"), None);
    }
}
