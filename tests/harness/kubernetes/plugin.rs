//! `kubectl tempmail`, as users run it: `kubectl` finds the plugin on `PATH`.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::kubectl::program;
use crate::{CommandOutput, binary};

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
        let mut command = Command::new(program("kubectl"));
        command.arg("tempmail").args(arguments.split(' ')).stdin(Stdio::null());
        command.env("PATH", self.path()).env("KUBECONFIG", kubeconfig);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("waiting does not panic").expect("`kubectl` is installed");
        let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
        CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
