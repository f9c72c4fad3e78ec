//! `redis.url` of the real program.

use nix::sys::signal::Signal;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::{Binary, CommandOutput, RedisServer};

use super::*;

const PASSWORD: &str = "hush";

/// Requires the password of every client.
fn require_password(redis: &RedisServer) {
    let _: String = redis.query(&["CONFIG", "SET", "requirepass", PASSWORD]);
}

async fn wait_until_degraded(installation: &UpInstallation, degraded: bool) {
    let line = format!("tempmail_bus_degraded {}", u8::from(degraded));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    eventually(&line, || async {
        let url = format!("http://{}/metrics", installation.admin);
        let metrics = client.get(url).send().await.unwrap().text().await.unwrap();
        metrics.lines().any(|found| found == line).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn up_reconnects_to_redis_and_releases_its_permits_when_it_ends() {
    let mut redis = RedisServer::new();
    require_password(&redis);
    let installation = UpInstallation::new();
    let url = format!("redis://:{PASSWORD}@127.0.0.1:{}", redis.port());
    let mut command = installation.command();
    command.args(["--redis-url", &url]).env("TEMPMAIL_TELEMETRY__LOG", "info");
    let mut up = tokio::task::block_in_place(|| {
        let mut up = Binary::spawn(command);
        up.wait_for_line("ready");
        up
    });
    wait_until_degraded(&installation, false).await;
    redis.kill();
    wait_until_degraded(&installation, true).await;
    redis.start();
    require_password(&redis);
    wait_until_degraded(&installation, false).await;
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut sessions = || redis::cmd("KEYS").arg("*:sessions").query::<Vec<String>>(&mut connection).unwrap();
    assert_eq!(sessions().len(), 1);
    up.signal(Signal::SIGTERM);
    assert!(tokio::task::block_in_place(|| up.wait()).success(), "{}", up.output());
    assert!(sessions().is_empty(), "its session has ended");
    let log = up.stderr();
    let count = |line| log.matches(line).count();
    let (connected, unavailable) = (count("Redis is connected"), count("Redis is unavailable"));
    assert!(unavailable >= 1 && connected == unavailable + 1, "one line a change: {log}");
    assert!(!log.contains(PASSWORD), "{log}");
}

#[tokio::test]
async fn refuses_to_start_with_an_invalid_url() {
    for role in ["api", "ingest", "up"] {
        for (url, sentence) in [
            ("http://:hush@host", "`redis.url` must be a URL, such as redis://user:password@host:6379/0"),
            ("hush", "`redis.url` must be a URL"),
        ] {
            let environment =
                [("TEMPMAIL_POSTGRES__URL", "postgres://nowhere/x"), ("TEMPMAIL_REDIS__URL", url)];
            let refused = CommandOutput::run(&[role], &environment).await;
            assert!(refused.failure().starts_with(sentence), "{}", refused.stderr);
            assert!(!refused.stderr.contains(PASSWORD), "{}", refused.stderr);
        }
    }
}
