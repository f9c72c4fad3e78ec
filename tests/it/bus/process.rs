//! `redis.url` in the real program.

use nix::sys::signal::Signal;
use tempmail_tests::binary::Installation;
use tempmail_tests::{Binary, CommandOutput, RedisServer};

use super::*;

const PASSWORD: &str = "hush";

/// Lets only those in who know the password.
fn lock(redis: &RedisServer) {
    let _: String = redis.query(&["CONFIG", "SET", "requirepass", PASSWORD]);
}

async fn degraded(installation: &Installation, expected: &str) {
    let line = format!("tempmail_bus_degraded {expected}");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    eventually(&line, || async {
        let url = format!("http://{}/metrics", installation.admin);
        let metrics = client.get(url).send().await.unwrap().text().await.unwrap();
        metrics.lines().any(|found| found == line).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn up_shares_a_redis_outlives_it_and_leaves_it() {
    let mut redis = RedisServer::new();
    lock(&redis);
    let installation = Installation::new();
    let url = format!("redis://:{PASSWORD}@127.0.0.1:{}", redis.port());
    let mut command = installation.command();
    command.args(["--redis-url", &url]).env("TEMPMAIL_TELEMETRY__LOG", "info");
    let mut up = tokio::task::block_in_place(|| {
        let mut up = Binary::spawn(command);
        up.wait_for_line("ready");
        up
    });
    degraded(&installation, "0").await;
    redis.kill();
    degraded(&installation, "1").await;
    redis.start();
    lock(&redis);
    degraded(&installation, "0").await;
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut keys = || redis::cmd("KEYS").arg("*:sessions").query::<Vec<String>>(&mut connection).unwrap();
    assert_eq!(keys().len(), 1);
    up.signal(Signal::SIGTERM);
    assert!(tokio::task::block_in_place(|| up.wait()).success(), "{}", up.output());
    assert!(keys().is_empty(), "its places are free");
    let log = up.stderr();
    for (line, times) in [("Redis is well", 2), ("Redis is away", 1)] {
        assert_eq!(log.matches(line).count(), times, "{line}: {log}");
    }
    assert!(!log.contains(PASSWORD), "{log}");
}

#[tokio::test]
async fn a_wrong_url_stops_the_start_with_one_sentence() {
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
