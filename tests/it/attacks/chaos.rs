//! While an attack runs, a well-behaved client of another tenant is refused nothing, receives and reads each of its
//! mails, and memory is bounded. Also where attacker and victim have one client address, and where the attacker sends
//! to the victim's tenant or address. How long the victim waits is measured by `./tests/bench attack`.
//!
//! Ignored by default: `tests/run chaos` runs them.

use std::time::Duration;

use tempmail_runtime::config::{Config, DnsMode};
use tempmail_tests::attack::{
    AttackKind, AttackTarget, Listeners, Placement, RunningAttack, Victim, peak_memory, silent_dns,
};
use tempmail_tests::fleet::RoleProcess;
use tempmail_tests::{Fleet, TestDns};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long each attack runs, unless `$ATTACK_SECONDS` says otherwise.
const ATTACK_SECONDS: u64 = 30;
/// Message data in memory of `ingest`: a quarter of the default, less than each attack that parks data sends.
const MESSAGE_DATA: usize = 128 << 20;
/// Most resident memory of a process, beside message data. Of `api`, 256 MiB may be answers that wait to be read, of
/// which one client has a quarter at most.
const MEMORY: u64 = 300 << 20;
/// Idle connections to each port.
const IDLE_CONNECTIONS: usize = 5_000;

/// An attack takes the processor that others need for their deadlines, so one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// The default limits: nobody is exempt. What is small is reached within the time of an attack.
fn limit_everybody(config: &mut Config, dns: &TestDns) {
    let defaults = Config::default();
    config.http.unlimited_networks = defaults.http.unlimited_networks;
    config.smtp.unlimited_networks = defaults.smtp.unlimited_networks;
    config.limits = defaults.limits;
    config.limits.store_bytes = 1 << 30;
    config.limits.shared_bytes = 1 << 29;
    config.smtp.memory_bytes = MESSAGE_DATA;
    config.smtp.memory_bytes_per_peer = MESSAGE_DATA / 2;
    config.smtp.memory_bytes_per_tenant = MESSAGE_DATA / 4 * 3;
    config.dns = dns.settings(DnsMode::Authoritative);
}

fn attack_duration() -> Duration {
    let seconds = std::env::var_os("ATTACK_SECONDS").map(|seconds| {
        seconds.to_str().and_then(|seconds| seconds.parse().ok()).expect("ATTACK_SECONDS is a number")
    });
    Duration::from_secs(seconds.unwrap_or(ATTACK_SECONDS))
}

/// Runs the attack at each placement, each over processes of its own.
async fn disturbs_nobody(attack: AttackKind) {
    let _permit = ONE_AT_A_TIME.lock().await;
    for &placement in attack.placements() {
        disturbs_nobody_at(attack, placement).await;
    }
}

async fn disturbs_nobody_at(attack: AttackKind, placement: Placement) {
    let dns = silent_dns().await;
    let builder = Fleet::builder().apis(1).ingests(1).workers(1);
    let fleet = builder.config(|config| limit_everybody(config, &dns)).start().await;
    let (api, ingest) = (fleet.api(0), fleet.ingest(0));
    let admin = vec![api.admin(), ingest.admin()];
    let listeners = Listeners { smtp: ingest.listen(), http: api.listen(), admin };
    let target = AttackTarget::new(listeners, fleet.pool.clone(), placement, IDLE_CONNECTIONS, 1).await;
    let victim = Victim::new(&target).await;
    let prepared = attack.prepare(&target).await;

    let running = RunningAttack::start(prepared, &target);
    let seen = victim.run(Instant::now() + attack_duration()).await;
    let did = running.stop().await;

    let beside = format!("{} ({placement}): {did}", attack.name());
    seen.assert_undisturbed(&beside);
    assert!(!did.answers.is_empty(), "nothing was attacked");
    assert_bounded(api, MEMORY, &beside);
    assert_bounded(ingest, MEMORY + MESSAGE_DATA as u64, &beside);
    for process in fleet.processes() {
        process.wait_until_ready().await;
    }
}

fn assert_bounded(process: &RoleProcess, most: u64, beside: &str) {
    let peak = peak_memory(process.pid());
    assert!(peak <= most, "{:?} had {} MiB beside {beside}", process.role(), peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: four attacks of 30 s"]
async fn data_that_is_parked_with_bdat_disturbs_nobody() {
    disturbs_nobody(AttackKind::ParkedBdat).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: four attacks of 30 s"]
async fn slow_data_disturbs_nobody() {
    disturbs_nobody(AttackKind::SlowData).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s"]
async fn slow_readers_disturb_nobody() {
    disturbs_nobody(AttackKind::SlowReaders).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s"]
async fn unknown_credentials_disturb_nobody() {
    disturbs_nobody(AttackKind::UnknownCredentials).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s"]
async fn wrong_passwords_disturb_nobody() {
    disturbs_nobody(AttackKind::SignIns).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s"]
async fn password_resets_disturb_nobody() {
    disturbs_nobody(AttackKind::PasswordResets).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s on 20,000 messages"]
async fn deep_pages_disturb_nobody() {
    disturbs_nobody(AttackKind::DeepPages).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: four attacks of 30 s with mails of 25 MB"]
async fn a_sender_that_fills_the_store_disturbs_nobody() {
    disturbs_nobody(AttackKind::StoreFiller).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s with 20,000 connections"]
async fn idle_connections_disturb_nobody() {
    disturbs_nobody(AttackKind::IdleConnections).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s"]
async fn silent_name_servers_disturb_nobody() {
    disturbs_nobody(AttackKind::SilentNameServers).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s"]
async fn harvesting_disturbs_nobody() {
    disturbs_nobody(AttackKind::Harvest).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: two attacks of 30 s on 20,000 messages"]
async fn deletions_by_tag_disturb_nobody() {
    disturbs_nobody(AttackKind::TagDeletions).await;
}
