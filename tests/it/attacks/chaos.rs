//! While an attack runs, a well-behaved client of another tenant and address is refused nothing, receives and reads each of
//! its mails, and memory is bounded. Clients that share an address or a tenant with an attacker may be refused.
//!
//! Ignored by default: `tests/run chaos` runs them.

use std::fs;
use std::time::Duration;

use tempmail_runtime::config::Config;
use tempmail_tests::Fleet;
use tempmail_tests::fleet::RoleProcess;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::attacker::{Attack, Attacker};
use super::victim::Victim;

/// How long each attack runs.
const TIME: Duration = Duration::from_secs(10);
/// Message data in memory of `ingest`: a quarter of the default, less than an attack that parks data sends.
const MESSAGE_DATA: usize = 128 << 20;
/// Most resident memory of a process, beside message data. Of `api`, 256 MiB may be answers that wait to be read, of
/// which one client has a quarter at most.
const MEMORY: u64 = 300 << 20;

/// An attack takes the processor that others need for their deadlines, so one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// The default limits: nobody is exempt. What is small is reached within the time of an attack.
fn limit_everybody(config: &mut Config) {
    let defaults = Config::default();
    config.http.unlimited_networks = defaults.http.unlimited_networks;
    config.smtp.unlimited_networks = defaults.smtp.unlimited_networks;
    // The clients name their addresses in headers of the PROXY protocol.
    config.smtp.proxy_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config.limits = defaults.limits;
    config.smtp.memory_bytes = MESSAGE_DATA;
    config.smtp.memory_bytes_per_peer = MESSAGE_DATA / 2;
    config.smtp.memory_bytes_per_tenant = MESSAGE_DATA / 4 * 3;
}

async fn disturbs_nobody(attack: Attack) {
    let _permit = ONE_AT_A_TIME.lock().await;
    let fleet = Fleet::builder().apis(1).ingests(1).workers(1).config(limit_everybody).start().await;
    let attacker = Attacker::new(&fleet, attack).await;
    let victim = Victim::new(&fleet).await;
    let mails = tokio::select! {
        mails = victim.run(Instant::now() + TIME) => mails,
        () = attacker.attack(attack) => unreachable!("it has no end of its own"),
    };
    let answers = attacker.answers();
    assert!(mails > 0 && !answers.is_empty(), "{mails} mails beside {answers:?}");
    assert_bounded(fleet.api(0), MEMORY);
    assert_bounded(fleet.ingest(0), MEMORY + MESSAGE_DATA as u64);
    for process in fleet.processes() {
        process.wait_until_ready().await;
    }
}

/// Asserts that a process never had more memory.
fn assert_bounded(process: &RoleProcess, most: u64) {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).expect("the process is there");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    let peak = kib.expect("Linux tells the peak") << 10;
    assert!(peak <= most, "{:?} had {} MiB", process.role(), peak >> 20);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn data_that_is_parked_with_bdat_disturbs_nobody() {
    disturbs_nobody(Attack::ParkedData).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn slow_readers_disturb_nobody() {
    disturbs_nobody(Attack::SlowReading).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn unknown_credentials_disturb_nobody() {
    disturbs_nobody(Attack::UnknownCredentials).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn wrong_passwords_disturb_nobody() {
    disturbs_nobody(Attack::SignIns).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s on 10,000 messages"]
async fn searches_that_find_nothing_disturb_nobody() {
    disturbs_nobody(Attack::Searches).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: an attack of 10 s"]
async fn codes_of_a_mail_of_numbers_disturb_nobody() {
    disturbs_nobody(Attack::Extraction).await;
}
