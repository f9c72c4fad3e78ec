//! Files that others replace while the process runs, such as certificates in a mounted Secret.

use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks at the files. A kubelet takes about as long to update a mounted Secret.
pub const PERIOD: Duration = Duration::from_secs(60);

/// Watches the contents of a few small files.
#[derive(Debug)]
pub struct FileWatch {
    paths: Vec<PathBuf>,
    /// The contents when they were last looked at; `None` for a file that could not be read.
    seen: Vec<Option<Vec<u8>>>,
}

impl FileWatch {
    /// Watches for changes from now on. Call it before the files are used, so that no change is missed.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let seen = paths.iter().map(|path| std::fs::read(path).ok()).collect();
        Self { paths, seen }
    }

    /// Returns when a file has other contents than before, at most [`PERIOD`] after that. The links of a mounted
    /// Secret are replaced at once, so certificate and key are of one pair.
    pub async fn changed(&mut self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let mut seen = Vec::with_capacity(self.paths.len());
            for path in &self.paths {
                seen.push(tokio::fs::read(path).await.ok());
            }
            if seen != self.seen {
                self.seen = seen;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn returns_once_for_each_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tls.crt");
        std::fs::write(&path, "first").unwrap();
        let mut watch = FileWatch::new(vec![path.clone()]);
        for contents in ["second", "third"] {
            std::fs::write(&path, contents).unwrap();
            watch.changed().await;
        }
        std::fs::remove_file(&path).unwrap();
        watch.changed().await;
        let unchanged = tokio::time::timeout(PERIOD * 5, watch.changed());
        assert!(unchanged.await.is_err());
    }
}
