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

/// Whether a line of the log says that Redis is connected or unavailable.
fn reported_state(line: &str) -> Option<bool> {
    let connected = line.contains("Redis is connected");
    (connected || line.contains("Redis is unavailable")).then_some(connected)
}

#[tokio::test(flavor = "multi_thread")]
async fn up_reconnects_to_redis_and_releases_its_permits_when_it_ends() {
    let mut redis = RedisServer::new();
    require_password(&redis);
    let installation = UpInstallation::new();
    let url = format!("redis://:{PASSWORD}@127.0.0.1:{}", redis.port());
    let start = || {
        let mut command = installation.command();
        command.args(["--redis-url", &url]).env("TEMPMAIL_TELEMETRY__LOG", "info");
        tokio::task::block_in_place(|| {
            let mut up = Binary::spawn(command);
            up.wait_for_line("ready");
            up
        })
    };
    let end = |up: &mut Binary| {
        up.signal(Signal::SIGTERM);
        assert!(tokio::task::block_in_place(|| up.wait()).success(), "{}", up.output());
    };
    let mut up = start();
    wait_until_degraded(&installation, false).await;
    redis.kill();
    wait_until_degraded(&installation, true).await;
    redis.start();
    require_password(&redis);
    wait_until_degraded(&installation, false).await;
    let connect = || redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
    let sessions = || redis::cmd("KEYS").arg("*:sessions").query::<Vec<String>>(&mut connect()).unwrap();
    assert_eq!(sessions().len(), 1);
    end(&mut up);
    let log = up.stderr();
    let states: Vec<bool> = log.lines().filter_map(reported_state).collect();
    let is_change = states.windows(2).all(|states| states[0] != states[1]);
    assert!(is_change && states.len() >= 3, "one line a change: {log}");
    assert!(!log.contains(PASSWORD), "{log}");

    // On a busy machine, Redis may be unavailable to a process that ends: its session expires later.
    let mut ends = 1;
    while !sessions().is_empty() {
        assert!(ends < 5, "its session has ended");
        redis::cmd("FLUSHALL").query::<()>(&mut connect()).unwrap();
        up = start();
        wait_until_degraded(&installation, false).await;
        assert_eq!(sessions().len(), 1);
        end(&mut up);
        ends += 1;
    }
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
