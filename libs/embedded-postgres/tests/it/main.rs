//! The private server on a real PostgreSQL: start, exclusion, recovery and access.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Write as _, stdout};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use sqlx::{Connection as _, PgConnection, Row as _};
use tempfile::TempDir;
use tempmail_embedded_postgres::{EmbeddedPostgres, Error, Options, running_url};

fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    // As root, Postgres runs as another user and must get through.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    directory
}

fn options(directory: &TempDir) -> Options {
    Options::new(directory.path().join("postgres"))
}

async fn connect(server: &EmbeddedPostgres) -> PgConnection {
    PgConnection::connect(&server.connection_url("postgres")).await.unwrap()
}

async fn show(server: &EmbeddedPostgres, setting: &str) -> String {
    let row =
        sqlx::query("SELECT current_setting($1)").bind(setting).fetch_one(&mut connect(server).await).await;
    row.unwrap().get(0)
}

fn kill_all(signal: &str, pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    assert!(Command::new("kill").arg(signal).args(pids).status().unwrap().success());
}

#[tokio::test]
async fn keeps_data_rejects_a_second_process_and_closes_its_files_to_others() {
    let directory = directory();
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    for (setting, value) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("listen_addresses", ""),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
        ("jit", "off"),
    ] {
        if setting == "lc_collate" && server.major() > 15 {
            continue;
        }
        assert_eq!(show(&server, setting).await, value, "{setting}");
    }
    sqlx::query("CREATE TABLE kept AS SELECT 7 AS n").execute(&mut connect(&server).await).await.unwrap();

    match EmbeddedPostgres::start(options(&directory)).await {
        Err(Error::InUse { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{:?}", other.err()),
    }

    let socket = server.socket_directory().join(".s.PGSQL.5432");
    assert_eq!(mode(server.socket_directory()), 0o700);
    assert_eq!(mode(&directory.path().join("postgres/password")), 0o600);
    assert_eq!(mode(&directory.path().join("postgres/data")), 0o700);
    if nix::unistd::geteuid().is_root() {
        let can_reach_socket = |uid: u32| {
            Command::new("test")
                .arg("-S")
                .arg(&socket)
                .uid(uid)
                .gid(uid)
                .current_dir("/")
                .status()
                .unwrap()
                .success()
        };
        assert!(can_reach_socket(0) && !can_reach_socket(54_321), "only the owner can reach the socket");
    }
    let url = server.connection_url("postgres").replace("tempmail:", "tempmail:wrong");
    assert!(PgConnection::connect(&url).await.is_err(), "a wrong password is rejected");

    server.stop().await;
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    let row = sqlx::query("SELECT n FROM kept").fetch_one(&mut connect(&server).await).await.unwrap();
    assert_eq!(row.get::<i32, _>(0), 7);
    server.stop().await;
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn logs_nothing_that_a_client_sends() {
    let directory = directory();
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    let mut connection = connect(&server).await;
    for statement in
        ["SELECT 'canary'::integer", "SELEC canary", "DO $$ BEGIN RAISE WARNING 'canary'; END $$"]
    {
        let _ = sqlx::raw_sql(statement).execute(&mut connection).await;
    }
    assert!(sqlx::query("SELECT $1::text::uuid").bind("canary").execute(&mut connection).await.is_err());
    drop(connection);
    server.stop().await;
    let log = std::fs::read_to_string(directory.path().join("postgres/postgres.log")).unwrap();
    assert!(log.contains("ready to accept connections"), "{log}");
    assert!(!log.to_lowercase().contains("canary"), "{log}");
}

/// Before the pid of the server in the output of the other process.
const SERVER: &str = "server: ";

/// Starts a server from another process, which a test can kill.
fn start_in_another_process(directory: &TempDir) -> (std::process::Child, u32) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "starts_a_server_until_it_is_killed", "--ignored", "--nocapture"])
        .env("TEMPMAIL_TEST_DIRECTORY", directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let pid = output.lines().find_map(|line| line.unwrap().strip_prefix(SERVER)?.parse().ok());
    (child, pid.expect("the other process starts a server"))
}

#[tokio::test]
#[ignore = "run by other tests, in a process of its own"]
async fn starts_a_server_until_it_is_killed() {
    let Some(directory) = std::env::var_os("TEMPMAIL_TEST_DIRECTORY") else { return };
    let directory = Path::new(&directory);
    let server = EmbeddedPostgres::start(Options::new(directory.join("postgres"))).await.unwrap();
    let statement = "CREATE TABLE kept AS SELECT 7 AS n";
    sqlx::query(statement).execute(&mut connect(&server).await).await.unwrap();
    // The test runner has begun a line.
    writeln!(stdout(), "\n{SERVER}{}", server.pid()).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn replaces_a_server_whose_parent_was_killed() {
    let directory = directory();
    let (mut child, orphan) = start_in_another_process(&directory);
    kill_all("-KILL", &[child.id()]);
    child.wait().unwrap();
    assert!(Path::new("/proc").join(orphan.to_string()).exists(), "the server outlives its parent");

    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    assert_ne!(server.pid(), orphan);
    let row = sqlx::query("SELECT n FROM kept").fetch_one(&mut connect(&server).await).await.unwrap();
    assert_eq!(row.get::<i32, _>(0), 7);
    server.stop().await;
}

#[tokio::test]
async fn recovers_when_server_and_parent_are_killed() {
    let directory = directory();
    let (mut child, postmaster) = start_in_another_process(&directory);
    kill_all("-KILL", &[child.id(), postmaster]);
    child.wait().unwrap();
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap_or_else(|error| {
        panic!(
            "{error}\n{}",
            std::fs::read_to_string(directory.path().join("postgres/postgres.log")).unwrap()
        )
    });
    let row = sqlx::query("SELECT n FROM kept").fetch_one(&mut connect(&server).await).await.unwrap();
    assert_eq!(row.get::<i32, _>(0), 7);
    server.stop().await;
}

#[tokio::test]
async fn does_not_touch_another_process_that_has_the_pid_of_a_former_server() {
    let directory = directory();
    EmbeddedPostgres::start(options(&directory)).await.unwrap().stop().await;
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let data = directory.path().join("postgres/data");
    let stale = format!("{}\n{}\n1\n5432\n\n\n\nready\n", bystander.id(), data.display());
    std::fs::write(data.join("postmaster.pid"), stale).unwrap();
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "the other process still runs");
    server.stop().await;
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn puts_the_socket_elsewhere_if_its_path_is_too_long() {
    let directory = directory();
    let long = directory.path().join("n".repeat(90));
    let server = EmbeddedPostgres::start(Options { durable: false, ..Options::new(long) }).await.unwrap();
    let socket = server.socket_directory().to_owned();
    assert_eq!(mode(&socket), 0o700);
    assert_eq!(show(&server, "fsync").await, "off");
    server.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn returns_the_url_of_a_running_server_for_its_directory() {
    let directory = directory();
    let long = directory.path().join("n".repeat(90));
    for path in [directory.path().join("postgres"), long] {
        let not_running = || matches!(running_url(&path, "postgres"), Err(Error::NotRunning(_)));
        assert!(not_running(), "no server was started");
        let options = Options { durable: false, ..Options::new(&path) };
        let server = EmbeddedPostgres::start(options).await.unwrap();
        assert_eq!(running_url(&path, "postgres").unwrap(), server.connection_url("postgres"));
        server.stop().await;
        assert!(not_running(), "the server was stopped");
        let stale = format!("{}\n{}\n1\n5432\n/tmp\n\n\nready\n", std::process::id(), path.display());
        std::fs::write(path.join("data/postmaster.pid"), stale).unwrap();
        assert!(not_running(), "another process has this pid");
    }
}

#[tokio::test]
async fn reports_data_of_a_version_that_is_not_installed() {
    let directory = directory();
    let data = directory.path().join("postgres/data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("PG_VERSION"), "9\n").unwrap();
    let error = EmbeddedPostgres::start(options(&directory)).await.err().unwrap().to_string();
    assert!(error.contains("was created by PostgreSQL 9, but no PostgreSQL 9 is installed"), "{error}");
}

#[tokio::test]
#[ignore = "needs the network"]
async fn starts_a_downloaded_server() {
    let directory = directory();
    let downloaded = Options { skip_installed: true, ..options(&directory) };
    let server = EmbeddedPostgres::start(downloaded.clone()).await.unwrap();
    assert_eq!(server.major(), 17);
    server.stop().await;
    EmbeddedPostgres::start(downloaded).await.unwrap().stop().await;
}
