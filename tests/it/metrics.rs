//! Metrics of several roles that tell the state of an installation.

use reqwest::Method;
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{Fleet, SmtpClient};

const ADDRESS: &str = "name@inbox.localhost";

/// Takes the right to record what was logged from the worker.
const REVOKE_RECORDING: &str = "DO $$ DECLARE v_group text; BEGIN
    FOR v_group IN SELECT grantee FROM information_schema.role_table_grants
                    WHERE table_name = 'audit_unlogged' AND privilege_type = 'DELETE' AND grantee LIKE '%worker%'
    LOOP EXECUTE format('REVOKE DELETE ON audit_unlogged FROM %I', v_group); END LOOP; END $$";

/// The value of a metric with its labels, as `/metrics` has it; 0 if there is none yet.
async fn value(process: &RoleProcess, metric: &str) -> f64 {
    let metrics = process.metrics().await;
    let line = metrics.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().unwrap())
}

async fn wait_for(process: &RoleProcess, metric: &str, is_expected: impl Fn(f64) -> bool) {
    eventually(metric, || async { is_expected(value(process, metric).await).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::float_cmp, reason = "the values are counts")]
async fn counts_mail_by_its_reply_and_measures_commits() {
    let fleet = Fleet::builder().apis(0).ingests(1).workers(0);
    let fleet = fleet.config(|config| config.smtp.max_message_bytes = 10_000).start().await;
    fleet.deliver(0, ADDRESS, "stored").await;
    let mut client = SmtpClient::connect_with_ehlo(fleet.smtp(0)).await;
    let sender = "a@client.example";
    let too_big = client.transact(sender, &[ADDRESS], "x\r\n".repeat(5_000).as_bytes()).await;
    assert_eq!(too_big.status(), "552 5.3.4");
    let bare = client.transact(sender, &[ADDRESS], b"Subject: bare\n\r\n").await;
    assert_eq!(bare.status(), "554 5.6.0");
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive(&format!("RCPT TO:<{ADDRESS}>")).await;
    client.send(format!("BDAT 15000 LAST\r\n{}", "x\r\n".repeat(5_000))).await;
    assert_eq!(client.reply().await.status(), "552 5.3.4");

    let ingest = fleet.ingest(0);
    wait_for(ingest, "tempmail_smtp_mails_total{code=\"250\"}", |count| count == 1.0).await;
    wait_for(ingest, "tempmail_smtp_mails_total{code=\"552\"}", |count| count == 2.0).await;
    wait_for(ingest, "tempmail_smtp_mails_total{code=\"554\"}", |count| count == 1.0).await;
    assert_eq!(value(ingest, "tempmail_ingest_commit_seconds_count").await, 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_replies_that_are_due_to_a_limit() {
    let fleet = Fleet::builder().apis(0).ingests(1).workers(0);
    let fleet = fleet.config(|config| {
        config.smtp.max_message_bytes = 1_000;
        // Less than a message takes at first.
        config.smtp.memory_bytes = 3_000;
    });
    let fleet = fleet.start().await;
    let mut client = SmtpClient::connect_with_ehlo(fleet.smtp(0)).await;
    let deferred = client.transact("a@client.example", &[ADDRESS], b"Subject: no memory\r\n\r\n").await;
    assert_eq!(deferred.status(), "452 4.3.1");
    eventually("the reply is counted", || async {
        let metrics = fleet.ingest(0).metrics().await;
        let mut limited = metrics.lines().filter(|line| line.starts_with("tempmail_smtp_limited_total{"));
        let counted = limited.any(|line| line.contains("code=\"452\"") && line.contains("limit=\"memory\""));
        counted.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::float_cmp, reason = "the values are counts")]
async fn measures_answers_to_clients_that_wait_and_no_others() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let answers = "tempmail_answer_seconds_count{surface=\"long_poll\"}";
    // A long-poll counts as a subscriber before its first read, which may find the mail: then it has not waited.
    for attempt in 0.. {
        let address = format!("waiting{attempt}@inbox.localhost");
        fleet.mailbox(Some(&fleet.tenant.pro), &address).await;
        let inbox = format!("/v1/inbox/{address}");
        let ask = || fleet.request(0, Method::GET, &inbox).live(&fleet.tenant.live).send();
        let waiting = tokio::spawn(ask());
        wait_for(fleet.api(0), "tempmail_subscribers", |count| count == 1.0).await;
        fleet.deliver(0, &address, "awaited").await;
        within_deadline("an answer", waiting).await.unwrap().expect(200);
        if value(fleet.api(0), answers).await > 0.0 {
            // It has the mail at once: nobody waited for it.
            ask().await.expect(200);
            assert_eq!(value(fleet.api(0), answers).await, 1.0);
            return;
        }
        assert!(attempt < 20, "no answer to a client that waited is measured");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::float_cmp, reason = "the values are counts")]
async fn reports_what_is_used_of_the_store_and_its_limits() {
    let fleet = Fleet::builder().apis(0).ingests(1).workers(0);
    let fleet = fleet.config(|config| config.limits.store_bytes = 50_000_000).start().await;
    let ingest = fleet.ingest(0);
    wait_for(ingest, "tempmail_limit_bytes{scope=\"store\"}", |bytes| bytes == 50_000_000.0).await;
    assert_eq!(value(ingest, "tempmail_used_bytes{scope=\"store\"}").await, 0.0);
    fleet.deliver(0, ADDRESS, "stored").await;
    wait_for(ingest, "tempmail_used_bytes{scope=\"store\"}", |bytes| bytes > 0.0).await;
    wait_for(ingest, "tempmail_used_bytes{scope=\"shared_inboxes\"}", |bytes| bytes > 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::float_cmp, reason = "the values are 0 or 1")]
async fn reports_the_component_that_is_not_ready() {
    let proxy = PostgresProxy::start().await;
    let fleet = Fleet::builder().apis(0).ingests(1).workers(0).postgres_through(proxy.port()).start().await;
    let metric = "tempmail_not_ready{component=\"postgres\"}";
    wait_for(fleet.ingest(0), metric, |not_ready| not_ready == 0.0).await;
    proxy.cut();
    wait_for(fleet.ingest(0), metric, |not_ready| not_ready == 1.0).await;
    proxy.restore();
    wait_for(fleet.ingest(0), metric, |not_ready| not_ready == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_how_long_audit_entries_wait_for_the_log() {
    let fleet = Fleet::builder().apis(1).ingests(0).workers(1).start().await;
    let metric = "tempmail_audit_oldest_unlogged_seconds";
    sqlx::raw_sql(REVOKE_RECORDING).execute(&fleet.pool).await.unwrap();
    fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    wait_for(fleet.worker(0), metric, |age| age > 5.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_of_each_metric_what_it_is() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(1).start().await;
    fleet.deliver(0, ADDRESS, "stored").await;
    for process in [fleet.api(0), fleet.ingest(0), fleet.worker(0)] {
        let metrics = process.metrics().await;
        let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let mut count = 0;
        for name in names {
            count += 1;
            assert!(metrics.contains(&format!("# HELP {name} ")), "{name} has no `# HELP` line");
        }
        assert!(count > 0, "there are metrics");
    }
}
