//! Other users of the machine can't connect to the Postgres of `up`.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Uid, User};
use tempmail_tests::binary::UpInstallation;

/// Adds the sockets in a directory and below it.
fn find_sockets(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_socket() {
            found.push(path);
        } else if kind.is_dir() {
            find_sockets(&path, found);
        }
    }
}

/// The sockets that processes listen on, from `/proc`: paths, and TCP ports.
fn listening_sockets(processes: &[u32]) -> (Vec<PathBuf>, Vec<u16>) {
    let mut inodes = Vec::new();
    for process in processes {
        for entry in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let target = target.to_string_lossy().into_owned();
            inodes.extend(
                target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']').map(str::to_owned)),
            );
        }
    }
    let mut paths = Vec::new();
    for line in fs::read_to_string("/proc/net/unix").unwrap().lines().skip(1) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if columns.len() > 7 && inodes.iter().any(|inode| inode == columns[6]) && columns[3] == "00010000" {
            paths.push(PathBuf::from(columns[7]));
        }
    }
    let mut ports = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            if columns.len() > 9 && columns[3] == "0A" && inodes.iter().any(|inode| inode == columns[9]) {
                let port = columns[1].rsplit_once(':').and_then(|(_, hex)| u16::from_str_radix(hex, 16).ok());
                ports.extend(port);
            }
        }
    }
    (paths, ports)
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_listens_on_a_private_socket_only() {
    let installation = UpInstallation::new();
    let server = installation.up(&[]);
    let (mut paths, ports) = listening_sockets(&server.descendants());
    assert_eq!(ports, Vec::<u16>::new(), "Postgres listens on TCP");
    find_sockets(&installation.data_dir(), &mut paths);
    paths.retain(|path| path.to_string_lossy().contains(".s.PGSQL."));
    assert!(!paths.is_empty(), "the socket of Postgres was not found");
    for path in &paths {
        let directory = fs::metadata(path.parent().unwrap()).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&directory.permissions());
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }

    // The directory of the socket rejects other users.
    if !Uid::effective().is_root() {
        return;
    }
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(paths[0].parent().unwrap()).unwrap());
    let other = ["nobody", "daemon", "www-data"]
        .iter()
        .find_map(|name| User::from_name(name).ok().flatten().filter(|user| user.uid.as_raw() != owner))
        .expect("there is another user");
    for path in &paths {
        let mut probe = Command::new("python3");
        probe.args(["-c", "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"]);
        probe.arg(path).uid(other.uid.as_raw()).gid(other.gid.as_raw()).current_dir("/");
        let Ok(output) = probe.output() else { continue };
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("PermissionError"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_requires_a_password_on_its_socket() {
    let installation = UpInstallation::new();
    let server = installation.up(&[]);
    let (paths, _) = listening_sockets(&server.descendants());
    let directory = paths
        .iter()
        .filter(|path| path.to_string_lossy().contains(".s.PGSQL."))
        .find_map(|path| path.parent())
        .expect("the socket of Postgres was not found");
    for user in ["postgres", "tempmail", "nobody", "root"] {
        for database in ["postgres", "template1", "tempmail"] {
            let url = format!("postgres://{user}:guess@localhost/{database}?host={}", directory.display());
            let connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await;
            let error = connection.expect_err("the password is wrong").to_string();
            assert!(error.contains("password authentication failed"), "{user}: {error}");
        }
    }
}
