//! Many domains are due at once: all of them are checked in time, and other work of the processes goes on.

use std::collections::BTreeMap;

use hickory_proto::rr::RecordType;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::dns::NameServerFault;
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::rows::insert_due_domains;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, TestDns};

use crate::webhooks::processes::{MailboxWebhook, wait_until_delivered};

const TENANTS: i32 = 50;
const DOMAINS_OF_A_TENANT: i32 = 10;
const DOMAINS: usize = 500;
/// Time between two checks of a pending domain, seconds: shorter than in use, so that several pass.
const INTERVAL: u32 = 10;
/// Checks of each domain: the first one, and three intervals.
const CHECKS: usize = 4;

/// Two workers with a webhook, and domains that are due.
async fn start(dns: &TestDns, interval_seconds: u32) -> (Fleet, MailboxWebhook) {
    let settings = dns.settings(DnsMode::Recursive);
    let fleet = Fleet::builder()
        .receivers()
        .config(|config| {
            config.dns = settings;
            config.dns.interval_seconds = interval_seconds;
        })
        .apis(1)
        .ingests(1)
        .workers(2)
        .start()
        .await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    insert_due_domains(&fleet.pool, TENANTS, DOMAINS_OF_A_TENANT).await;
    (fleet, webhook)
}

/// The checks of each domain that the resolver was asked for.
fn count_checks(dns: &TestDns) -> BTreeMap<String, usize> {
    let mut checks = BTreeMap::new();
    for query in dns.recursive_server().queries() {
        if query.record_type == RecordType::TXT && !query.over_tcp {
            *checks.entry(query.name.to_lowercase()).or_default() += 1;
        }
    }
    checks
}

/// Asserts that no pass failed, and that webhooks were claimed at every poll.
async fn assert_undisturbed(worker: &RoleProcess) {
    for failures in ["tempmail_domain_failed_passes_total", "tempmail_worker_failed_passes_total"] {
        assert_eq!(worker.metric(failures).await, 0.0, "{failures}:\n{}", worker.log());
    }
    assert_eq!(worker.metric("tempmail_postgres_failures_total").await, 0.0, "{}", worker.log());
    assert!(!worker.log().contains("webhooks were not claimed"), "{}", worker.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_500_domains_that_are_due_at_once_while_webhooks_are_claimed() {
    let dns = TestDns::start().await;
    let (fleet, webhook) = start(&dns, INTERVAL).await;
    for round in 1..=CHECKS {
        fleet.deliver(0, &webhook.address, &format!("round {round}")).await;
        eventually("each domain is checked once more", || async {
            let checks = count_checks(&dns);
            let behind = checks.values().filter(|checks| **checks < round).count();
            (checks.len() == DOMAINS && behind == 0).then_some(())
        })
        .await;
        wait_until_delivered(&fleet).await;
    }
    assert_eq!(webhook.receiver.requests().len(), CHECKS);
    for worker in [fleet.worker(0), fleet.worker(1)] {
        assert_undisturbed(worker).await;
        assert!(worker.metric("tempmail_domain_checks_total").await > 0.0, "both workers check domains");
    }
}

mod chaos {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: 500 checks take as long as they may"]
    async fn checks_500_domains_whose_name_servers_are_silent() {
        let dns = TestDns::start().await;
        dns.recursive_server().set_fault(NameServerFault::Silent);
        let (fleet, webhook) = start(&dns, 300).await;
        fleet.deliver(0, &webhook.address, "meanwhile").await;
        wait_until_delivered(&fleet).await;
        eventually("each domain is checked and due an interval later", || async {
            let due = "SELECT count(*) FROM domain WHERE verify_status = 'pending' AND txt_result = 'unknown'
                                                     AND next_check_at > created_at + interval '300 s'";
            let checked: i64 = sqlx::query_scalar(due).fetch_one(&fleet.pool).await.unwrap();
            (usize::try_from(checked) == Ok(DOMAINS)).then_some(())
        })
        .await;
        for worker in [fleet.worker(0), fleet.worker(1)] {
            assert_undisturbed(worker).await;
        }
    }
}
