//! Point-in-time recovery with the commands of docs/operations.md.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use tempmail_tests::Fleet;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::wait::eventually;

const ADDRESS: &str = "back@inbox.localhost";
/// The time in the document's example.
const EXAMPLE_TIME: &str = "2026-11-22 10:00:00+00";

/// The blocks of the document's section, in their order: settings, base backup, recovery.
fn documented_blocks() -> [String; 3] {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let text = std::fs::read_to_string(document).unwrap();
    let (_, section) = text.split_once("### To any moment").expect("the document has the section");
    let (section, _) = section.split_once("\n### ").unwrap();
    let blocks: Vec<String> = section.split("```").skip(1).step_by(2).map(str::to_owned).collect();
    let blocks = blocks.iter().map(|block| block.split_once('\n').unwrap().1.to_owned());
    blocks.collect::<Vec<_>>().try_into().expect("the section has three blocks")
}

/// Names and values of a block of postgresql.conf.
fn settings(block: &str) -> Vec<(&str, &str)> {
    let settings = block.lines().map(|line| line.split_once(" = ").expect("a line is a setting"));
    settings.map(|(name, value)| (name, value.trim_matches('\''))).collect()
}

async fn subjects(fleet: &Fleet) -> Vec<String> {
    let request = fleet.request(0, Method::GET, &format!("/v1/inbox/{ADDRESS}")).live(&fleet.tenant.live);
    let listed = request.send().await.expect(200);
    let emails = listed["emails"].as_array().unwrap().iter();
    emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recovers_the_mail_of_a_moment() {
    let backup = tempfile::tempdir().unwrap();
    let place = backup.path().to_str().unwrap();
    let [conf, base, recovery] = documented_blocks().map(|block| block.replace("/backup", place));
    let postgres = DedicatedPostgres::start_with(&settings(&conf)).await;
    postgres.own(backup.path());
    let fleet = Fleet::builder().apis(1).ingests(1).database(postgres.database().await).start().await;
    fleet.deliver(0, ADDRESS, "before the backup").await;

    postgres.allow_replication().await;
    let base = base.replace("postgres://replicator@postgres.example.com", &postgres.url());
    postgres.run_as_its_user(&base);
    fleet.deliver(0, ADDRESS, "after the backup").await;
    let moment: String =
        sqlx::query_scalar("SELECT clock_timestamp()::text").fetch_one(&fleet.pool).await.unwrap();
    fleet.deliver(0, ADDRESS, "after the moment").await;
    let segment: String =
        sqlx::query_scalar("SELECT pg_walfile_name(pg_switch_wal())").fetch_one(&fleet.pool).await.unwrap();
    eventually("the segment is archived", || async {
        backup.path().join("wal").join(&segment).exists().then_some(())
    })
    .await;

    postgres.stop(StopMode::Fast).await;
    let data = postgres.data_directory();
    let recovery = recovery.replace("/srv/postgres", data.to_str().unwrap());
    assert!(recovery.contains(EXAMPLE_TIME), "{recovery}");
    let recovery = recovery.replace(EXAMPLE_TIME, &moment);
    assert!(Command::new("sh").args(["-ec", &recovery]).status().unwrap().success(), "{recovery}");
    postgres.ensure_started().await;
    eventually("the recovery is complete", || async {
        let standby = sqlx::query_scalar("SELECT pg_is_in_recovery()").fetch_one(&fleet.pool).await;
        matches!(standby, Ok(false)).then_some(())
    })
    .await;
    for process in fleet.processes() {
        process.restart().await;
    }
    assert_eq!(subjects(&fleet).await, ["after the backup", "before the backup"]);
    fleet.deliver(0, ADDRESS, "after the recovery").await;
    assert_eq!(subjects(&fleet).await, ["after the recovery", "after the backup", "before the backup"]);
}
