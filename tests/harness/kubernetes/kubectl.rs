//! `kubectl`, as a user has it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::Cluster;
use crate::CommandOutput;

impl Cluster {
    /// Runs `kubectl` as the administrator, and returns what it wrote to standard output.
    ///
    /// # Errors
    /// It did not do what it was told, and says why on standard error.
    ///
    /// # Panics
    /// There is no such program.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, CommandOutput> {
        self.kubectl_with(arguments, "").await
    }

    /// `kubectl apply -f -` with these manifests.
    ///
    /// # Errors
    /// The API server refuses one of them.
    ///
    /// # Panics
    /// There is no such program.
    pub async fn apply(&self, yaml: &str) -> Result<String, CommandOutput> {
        self.kubectl_with(&["apply", "-f", "-"], yaml).await
    }

    async fn kubectl_with(&self, arguments: &[&str], input: &str) -> Result<String, CommandOutput> {
        let mut command = Command::new(program("kubectl"));
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        if let Some(control_plane) = &self.control_plane {
            command.arg("--cache-dir").arg(control_plane.discovery());
        }
        command.args(arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`kubectl` is there");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let write = async move {
            // It may end without reading all of it.
            let _ = stdin.write_all(input.as_bytes()).await;
        };
        let ((), output) = tokio::join!(write, child.wait_with_output());
        let output = output.expect("our own child can be waited for");
        let text = |octets| String::from_utf8(octets).expect("it writes UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        if output.status.success() {
            Ok(stdout)
        } else {
            Err(CommandOutput { code: output.status.code(), stdout, stderr })
        }
    }
}

/// `kubectl` or `helm`: the one that `tests/cluster/build` made, else that of the machine.
pub fn program(name: &str) -> PathBuf {
    static FOLDERS: OnceLock<String> = OnceLock::new();
    let folders = FOLDERS.get_or_init(|| {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/build");
        let output = std::process::Command::new(build).arg("path").output().expect("bash starts");
        String::from_utf8(output.stdout).expect("paths are UTF-8").trim_end().to_owned()
    });
    let built = std::env::split_paths(folders).map(|folder| folder.join(name)).find(|path| path.exists());
    built.unwrap_or_else(|| name.into())
}
