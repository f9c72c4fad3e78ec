//! Why a statement gets no connection: the pool is empty, or Postgres can't be reached, as at the start of a machine that is
//! busy.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::Arc;

use nix::unistd::geteuid;
use reqwest::Method;
use tempmail::roles::{RoleContext, Roles};
use tempmail_bus::LocalBus;
use tempmail_model::clock::SystemClock;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_tests::binary::{StartingRole, program};
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Binary, Fleet, Silence};

/// In a network of its own: brings loopback up, receives queries of DNS, and answers none.
const SILENT_DNS: &str = "
import fcntl, socket, struct, time
dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(dns, 0x8914, struct.pack('16sh14x', b'lo', 0x41))
dns.bind(('127.0.0.1', 53))
time.sleep(3600)
";

#[tokio::test(flavor = "multi_thread")]
async fn tells_an_empty_pool_apart_from_a_postgres_that_is_silent() {
    let proxy = PostgresProxy::start().await;
    let fleet = Fleet::builder()
        .config(|config| config.postgres.pool = 1)
        .postgres_through(proxy.port())
        .apis(1)
        .ingests(0)
        .workers(0)
        .start()
        .await;
    let api = fleet.api(0);
    let list = |path| fleet.request(0, Method::GET, path).bearer(&fleet.tenant.pro);
    let failures = async |reason: &str| {
        let metrics = api.metrics().await;
        let counter = format!("tempmail_postgres_failures_total{{reason=\"{reason}\"}}");
        metrics.lines().any(|line| line.starts_with(&counter))
    };
    list("/pro/api/domains").send().await.expect(200);

    // The pool is empty, and Postgres is well: its one connection waits for this lock.
    let mut lock = fleet.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE webhook").execute(&mut *lock).await.unwrap();
    let (blocked, refused) = tokio::join!(list("/pro/api/webhooks").send(), list("/pro/api/webhooks").send());
    assert_eq!((blocked.status, refused.status), (503, 503));
    api.wait_for_log("all 1 connections of this process to Postgres (`postgres.pool`) are in use").await;
    assert!(!api.log().contains("Postgres can't be reached"), "{}", api.log());
    assert!(failures("pool_exhausted").await && !failures("unreachable").await);
    lock.rollback().await.unwrap();
    eventually("it answers again", || async {
        (list("/pro/api/webhooks").send().await.status == 200).then_some(())
    })
    .await;

    // Postgres is silent, and the pool has room.
    let exhausted = api.log().matches("are in use").count();
    proxy.fall_silent(Silence::Both);
    assert_eq!(list("/pro/api/domains").send().await.status, 503);
    api.wait_for_log("Postgres does not answer").await;
    assert!(failures("silent").await);
    assert_eq!(api.log().matches("are in use").count(), exhausted, "{}", api.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_why_a_role_does_not_reach_postgres_at_its_start() {
    // A port at which nothing listens, since the listener is gone.
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let ingest = StartingRole::start("ingest", &format!("postgres://a@{closed}/b"));
    let problem = format!("no connection to {closed}: Connection refused");
    ingest.wait_for_readyz(&format!("postgres: Postgres can't be reached: {problem}")).await;
    assert!(ingest.process.stderr().contains(&problem), "{}", ingest.process.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_dns_where_the_host_of_postgres_is_not_resolved() {
    let directory = tempfile::tempdir().unwrap();
    let resolvers = directory.path().join("resolv.conf");
    fs::write(&resolvers, "nameserver 127.0.0.1\noptions timeout:30\n").unwrap();
    let mut command = Command::new("unshare");
    if !geteuid().is_root() {
        command.arg("--map-root-user");
    }
    // The first process of a tree that ends with it.
    command.args(["--fork", "--pid", "--kill-child", "--mount", "--net", "sh", "-c"]);
    command.arg("mount --bind \"$1\" /etc/resolv.conf && { python3 -c \"$2\" & exec \"$3\" ingest; }");
    command.arg("sh").arg(&resolvers).arg(SILENT_DNS).arg(program());
    command.env("TEMPMAIL_POSTGRES__URL", "postgres://a@postgres.cluster.test/b");
    let role = Binary::spawn(command);
    eventually("the log names DNS", || async {
        let problem =
            "Postgres can't be reached: the name postgres.cluster.test is not resolved: DNS does not answer";
        role.stderr().contains(problem).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_http_interface_waits_until_there_is_a_connection() {
    let (app, proxy) = (App::start().await, PostgresProxy::start().await);
    proxy.cut();
    let url = app.database().role_url_through(Role::Api, Some(proxy.port()));
    let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
    let context = RoleContext {
        config: Arc::new(app.config().clone()),
        bus: Arc::new(LocalBus::new()),
        clock: Arc::new(SystemClock::default()),
        readiness: readiness.clone(),
    };
    let store = Store::connect(&url, 2, "tempmail tests").unwrap();
    let keys = Keys::from_config(app.config()).unwrap();
    let roles = Roles::new(context).with_api(store, keys).await.unwrap();
    let running = tokio::spawn(roles.run(shutdown.clone()));
    // The second one comes after a first attempt that failed.
    eventually("two connections are refused", || async { (proxy.refused_count() > 1).then_some(()) }).await;
    assert!(!running.is_finished() && !readiness.report().is_empty());
    proxy.restore();
    eventually("it serves", || async { readiness.report().is_empty().then_some(()) }).await;
    shutdown.drain.cancel();
    running.await.unwrap().unwrap();
}
