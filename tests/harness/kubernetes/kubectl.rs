//! `kubectl` and `helm`, as users run them. Tests that are not about them use
//! [`Objects`](super::Objects), which starts no process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::{CommandOutput, binary};

/// `kubectl` as the administrator of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Kubectl {
    pub(super) kubeconfig: PathBuf,
    /// Directory in which it may cache what it discovers of the API server.
    pub(super) cache: Option<PathBuf>,
}

impl Kubectl {
    /// Runs it with this standard input, and returns what it wrote to standard output.
    pub(super) async fn run(&self, arguments: &[&str], input: &str) -> Result<String, CommandOutput> {
        let mut command = Command::new(program("kubectl"));
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        if let Some(cache) = &self.cache {
            command.arg("--cache-dir").arg(cache);
        }
        command.args(arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("`kubectl` is installed");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        let write = async move {
            // It may end without reading all of it.
            let _ = stdin.write_all(input.as_bytes()).await;
        };
        let ((), output) = tokio::join!(write, child.wait_with_output());
        let output = output.expect("our own child can be waited for");
        let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        if output.status.success() {
            Ok(stdout)
        } else {
            Err(CommandOutput { code: output.status.code(), stdout, stderr })
        }
    }
}

/// Path of `kubectl` or `helm`: the one that `tests/cluster/build` built, else the one on `PATH`.
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

/// A folder with the plugin, as an installation has it: a link to the program.
#[derive(Debug)]
pub struct KubectlPlugin {
    folder: TempDir,
}

impl KubectlPlugin {
    /// Makes the link.
    ///
    /// # Panics
    /// The program can't be built.
    pub fn install() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let link = folder.path().join("kubectl-tempmail");
        std::os::unix::fs::symlink(binary::program(), link).expect("a link can be made");
        Self { folder }
    }

    /// A `PATH` with the plugin and `kubectl`.
    ///
    /// # Panics
    /// There is no path.
    pub fn path(&self) -> OsString {
        let kubectl = program("kubectl").parent().expect("a program is in a folder").to_owned();
        let path = std::env::var_os("PATH").expect("there is a path");
        let own = [self.folder.path().to_owned(), kubectl];
        let folders = own.into_iter().chain(std::env::split_paths(&path));
        std::env::join_paths(folders).expect("folders have no colon")
    }

    /// Runs `kubectl tempmail` with these arguments, separated by spaces, and this kubeconfig.
    ///
    /// # Panics
    /// `kubectl` is not installed.
    pub async fn run(&self, kubeconfig: &Path, arguments: &str) -> CommandOutput {
        let mut command = std::process::Command::new(program("kubectl"));
        command.arg("tempmail").args(arguments.split(' ')).stdin(Stdio::null());
        command.env("PATH", self.path()).env("KUBECONFIG", kubeconfig);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("waiting does not panic").expect("`kubectl` is installed");
        let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
        CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
