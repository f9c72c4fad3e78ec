//! The private server against the real thing: start, exclusion, recovery, and who may enter.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

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
async fn keeps_data_refuses_a_second_holder_and_closes_its_doors() {
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
        let sees = |uid: u32| {
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
        assert!(sees(0) && !sees(54_321), "only its owner reaches the socket");
    }
    let url = server.connection_url("postgres").replace("tempmail:", "tempmail:wrong");
    assert!(PgConnection::connect(&url).await.is_err(), "a wrong password is refused");

    server.stop().await;
    let begun = Instant::now();
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
    let row = sqlx::query("SELECT n FROM kept").fetch_one(&mut connect(&server).await).await.unwrap();
    assert_eq!(row.get::<i32, _>(0), 7);
    server.stop().await;
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_a_client_sends_is_not_in_the_log() {
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

/// Starts a server in a process of its own, which can be killed.
#[expect(clippy::zombie_processes, reason = "the caller waits for it; a panic ends the test")]
fn start_elsewhere(directory: &TempDir) -> (std::process::Child, u32) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_that_starts_a_server", "--ignored", "--nocapture"])
        .env("TEMPMAIL_TEST_DIRECTORY", directory.path())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    loop {
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap_or_default();
        if let Ok(pid) = pid.trim().parse() {
            return (child, pid);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the other process starts no server");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
#[ignore = "run by other tests, in a process of its own"]
async fn a_process_that_starts_a_server() {
    let Some(directory) = std::env::var_os("TEMPMAIL_TEST_DIRECTORY") else { return };
    let directory = Path::new(&directory);
    let server = EmbeddedPostgres::start(Options::new(directory.join("postgres"))).await.unwrap();
    let statement = "CREATE TABLE kept AS SELECT 7 AS n";
    sqlx::query(statement).execute(&mut connect(&server).await).await.unwrap();
    std::fs::write(directory.join("pid.part"), server.pid().to_string()).unwrap();
    std::fs::rename(directory.join("pid.part"), directory.join("pid")).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_server_whose_starter_was_killed_is_stopped_and_started_anew() {
    let directory = directory();
    let (mut child, orphan) = start_elsewhere(&directory);
    kill_all("-KILL", &[child.id()]);
    child.wait().unwrap();
    assert!(Path::new("/proc").join(orphan.to_string()).exists(), "the server outlives its starter");

    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    assert_ne!(server.pid(), orphan);
    let row = sqlx::query("SELECT n FROM kept").fetch_one(&mut connect(&server).await).await.unwrap();
    assert_eq!(row.get::<i32, _>(0), 7);
    server.stop().await;
}

#[tokio::test]
async fn everything_killed_at_once_is_recovered() {
    let directory = directory();
    let (mut child, postmaster) = start_elsewhere(&directory);
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
async fn a_living_process_with_the_number_of_a_gone_server_is_left_alone() {
    let directory = directory();
    EmbeddedPostgres::start(options(&directory)).await.unwrap().stop().await;
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let data = directory.path().join("postgres/data");
    let stale = format!("{}\n{}\n1\n5432\n\n\n\nready\n", bystander.id(), data.display());
    std::fs::write(data.join("postmaster.pid"), stale).unwrap();
    let server = EmbeddedPostgres::start(options(&directory)).await.unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "it still runs");
    server.stop().await;
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_directory_with_a_long_name_has_its_socket_elsewhere() {
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
async fn a_running_server_is_found_by_its_directory_alone() {
    let directory = directory();
    let long = directory.path().join("n".repeat(90));
    for place in [directory.path().join("postgres"), long] {
        let not_running = || matches!(running_url(&place, "postgres"), Err(Error::NotRunning(_)));
        assert!(not_running(), "nothing is there");
        let options = Options { durable: false, ..Options::new(&place) };
        let server = EmbeddedPostgres::start(options).await.unwrap();
        assert_eq!(running_url(&place, "postgres").unwrap(), server.connection_url("postgres"));
        server.stop().await;
        assert!(not_running(), "it has ended");
        let stale = format!("{}\n{}\n1\n5432\n/tmp\n\n\nready\n", std::process::id(), place.display());
        std::fs::write(place.join("data/postmaster.pid"), stale).unwrap();
        assert!(not_running(), "a process of its number is another one");
    }
}

#[tokio::test]
async fn data_of_a_version_that_is_not_here_is_one_sentence() {
    let directory = directory();
    let data = directory.path().join("postgres/data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("PG_VERSION"), "9\n").unwrap();
    let error = EmbeddedPostgres::start(options(&directory)).await.err().unwrap().to_string();
    assert!(error.contains("was made by PostgreSQL 9, but no PostgreSQL 9 is installed"), "{error}");
}

#[tokio::test]
#[ignore = "needs the network"]
async fn a_downloaded_server_works_where_none_is_installed() {
    let directory = directory();
    let downloaded = Options { skip_installed: true, ..options(&directory) };
    let begun = Instant::now();
    let server = EmbeddedPostgres::start(downloaded.clone()).await.unwrap();
    assert_eq!(server.major(), 17);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    server.stop().await;
    EmbeddedPostgres::start(downloaded).await.unwrap().stop().await;
}
