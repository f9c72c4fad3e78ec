//! A Postfix of our own: its configuration and queue are in the run's directory, it listens on
//! loopback, and what it queued it discards. The machine's own Postfix is not touched.

use std::fs::{self, DirBuilder, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command as StdCommand, Stdio};

use anyhow::{Context as _, ensure};
use nix::unistd::{User, geteuid};
use tokio::process::Command;

/// `fsync` before `250` is Postfix's default. Limits by client are off, as for all servers
/// here: there is one client.
const MAIN: &str = "\
compatibility_level = 3.6
mail_owner = postfix
setgid_group = postdrop
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
myhostname = postfix.bench.example
mydestination =
local_recipient_maps =
alias_maps =
alias_database =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
relay_domains = inbox.localhost
relay_transport = discard:
default_transport = discard:
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_client_connection_count_limit = 0
message_size_limit = 26214400
";

const MASTER: &str = "\
cleanup   unix n - n -    0 cleanup
qmgr      unix n - n 300  1 qmgr
rewrite   unix - - n -    - trivial-rewrite
bounce    unix - - n -    0 bounce
defer     unix - - n -    0 bounce
trace     unix - - n -    0 bounce
flush     unix n - n 1000? 0 flush
proxymap  unix - - n -    - proxymap
error     unix - - n -    - error
retry     unix - - n -    - error
discard   unix - - n -    - discard
anvil     unix - - n -    1 anvil
";

/// Writes the configuration and gives the command of the master process, in the foreground.
///
/// # Errors
/// The process is not root (Postfix changes users), or Postfix is not installed.
pub fn command(smtp: SocketAddr, directory: &Path) -> anyhow::Result<Command> {
    ensure!(geteuid().is_root(), "Postfix can only be started by root");
    let owner = User::from_name("postfix")?.context("there is no user postfix")?;
    let config = directory.join("postfix");
    let (queue, data) = (config.join("queue"), config.join("data"));
    fs::create_dir_all(&queue)?;
    if !data.exists() {
        DirBuilder::new().mode(0o700).create(&data)?;
        chown(&data, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))?;
    }
    let places = format!("queue_directory = {}\ndata_directory = {}\n", queue.display(), data.display());
    fs::write(config.join("main.cf"), format!("{MAIN}{places}"))?;
    fs::write(config.join("master.cf"), format!("{smtp} inet n - n - 100 smtpd\n{MASTER}"))?;
    for directory in [&config, &queue] {
        fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    }
    let checked = StdCommand::new("/usr/sbin/postfix").arg("-c").arg(&config).arg("check").output()?;
    ensure!(checked.status.success(), "postfix check: {}", String::from_utf8_lossy(&checked.stderr));
    // Not `postfix start-fg`: that is a shell, which would not pass our signal on. It makes a
    // session of its own, so it must not lead a process group.
    let mut command = Command::new("/usr/lib/postfix/sbin/master");
    command.arg("-c").arg(&config).arg("-s").stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}
