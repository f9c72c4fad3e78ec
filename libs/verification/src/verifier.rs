//! Checks custom domains and records the outcome. Any number of processes may check due domains: each domain is claimed
//! by one process at a time.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tempmail_model::clock::Clock;
use tempmail_model::verification::{FailureReason, Finding, RecordFindings};
use tempmail_runtime::config::Config;
use tempmail_store::{DomainToCheck, Store, StoreError, VerifyOutcome};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::decision::{CheckTrigger, Decision, DomainUpdate, RECHECK, decide, unverified};
use crate::resolver::Resolver;
use crate::resolver::server_query::Transport;
use crate::settings::DomainSettings;
use crate::vote::{DomainFindings, ExpectedRecords};

/// Checks in flight at once.
const IN_FLIGHT: usize = 50;
/// How long a process claims a domain. A check takes less; after a crash the domain is due again.
const LEASE: Duration = Duration::from_secs(60);

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult {
    /// Whether the TXT record was found.
    pub txt_found: bool,
    /// Whether the MX record was found.
    pub mx_found: bool,
    /// What came of it for the domain.
    pub outcome: CheckOutcome,
}

/// What came of a check for the domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Its status did not change.
    Kept,
    /// No name server voted, so its status did not change.
    NoAnswer,
    /// It serves now.
    Verified,
    /// It serves now, and another tenant lost the name.
    Transferred,
    /// It failed.
    Failed(FailureReason),
    /// Its records were found, but its name is equal to, above or below a system domain.
    OverlapsSystemDomain,
}

impl CheckOutcome {
    /// The word for it in metrics and logs.
    fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::NoAnswer => "no_answer",
            Self::Verified => "verified",
            Self::Transferred => "transferred",
            Self::Failed(reason) => reason.as_str(),
            Self::OverlapsSystemDomain => "overlaps_system_domain",
        }
    }
}

/// The verifier of custom domains.
pub struct Verifier {
    store: Store,
    clock: Arc<dyn Clock>,
    /// `None` on a machine without DNS servers.
    resolver: Option<Resolver>,
    settings: DomainSettings,
    /// Permits to record a check, each of which takes a connection: half of the pool, so that other work of the process
    /// finds one however many checks end at once.
    recording: Semaphore,
}

impl Verifier {
    /// Needs a database whose schema is up to date. On a machine without DNS servers every check is without an answer.
    pub fn new(config: &Config, store: Store, clock: Arc<dyn Clock>) -> Self {
        let resolver = Resolver::new(&config.dns)
            .inspect_err(|error| tracing::warn!("custom domains can't be verified: {error}"))
            .ok();
        let recording = Semaphore::new((store.max_connections() as usize / 2).max(1));
        Self { store, clock, resolver, settings: DomainSettings::new(config), recording }
    }

    /// The settings for custom domains.
    pub fn settings(&self) -> &DomainSettings {
        &self.settings
    }

    /// Checks a domain now, on request of its owner; `None` where it is removed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn check(&self, id: Uuid) -> Result<Option<CheckResult>, StoreError> {
        let Some(domain) = self.store.find_domain_to_check(id).await? else { return Ok(None) };
        self.check_domain(&domain, CheckTrigger::Requested).await.map(Some)
    }

    /// Checks every domain that is due and that no other process has claimed. An error with one domain does not affect
    /// the others. Dropping the future ends the checks, whose domains are due again when their lease ends.
    ///
    /// # Errors
    /// The first [`StoreError`]; its domain is due again when its lease ends.
    ///
    /// # Panics
    /// A check panicked.
    pub async fn check_due(self: &Arc<Self>) -> Result<(), StoreError> {
        let done = self.check_claimed().await;
        if done.is_err() {
            metrics::counter!("tempmail_domain_failed_passes_total").increment(1);
        }
        done
    }

    async fn check_claimed(self: &Arc<Self>) -> Result<(), StoreError> {
        // Domains that become due meanwhile are left to the next pass, so that this one ends.
        let now = self.clock.now();
        let domains = self.store.count_domains_to_check(self.settings.interval, now).await?;
        #[expect(clippy::cast_precision_loss, reason = "gauges of some thousands")]
        let (due, pending) = (domains.due as f64, domains.pending as f64);
        metrics::gauge!("tempmail_domains_due").set(due);
        metrics::gauge!("tempmail_domains_pending").set(pending);
        let trigger = CheckTrigger::Scheduled { interval: self.settings.interval };
        let (mut result, mut claims) = (Ok(()), true);
        // Tasks of their own: a check that holds a connection goes on while this pass waits for one.
        let mut in_flight = JoinSet::new();
        loop {
            // After each check there may be one more, of a tenant that had as many in flight as it may.
            if claims && in_flight.len() <= IN_FLIGHT / 2 {
                match self.store.claim_due_domains(IN_FLIGHT - in_flight.len(), LEASE, now).await {
                    Ok(claimed) => {
                        for domain in claimed {
                            let verifier = Arc::clone(self);
                            in_flight.spawn(async move { verifier.check_domain(&domain, trigger).await });
                        }
                    }
                    // What is claimed is still checked.
                    Err(error) => (result, claims) = (result.and(Err(error)), false),
                }
            }
            match in_flight.join_next().await {
                Some(Ok(checked)) => result = result.and(checked.map(drop)),
                Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
                None => return result,
            }
        }
    }

    async fn check_domain(
        &self,
        domain: &DomainToCheck,
        trigger: CheckTrigger,
    ) -> Result<CheckResult, StoreError> {
        let mut findings = self.find_records(domain, Transport::UdpFirst).await;
        let mut decision = decide(domain, &findings, trigger, self.clock.now());
        if matches!(decision, Decision::Verify { .. }) {
            // An answer over UDP may be forged, and this one may transfer a name.
            findings = self.find_records(domain, Transport::TcpOnly).await;
            decision = decide(domain, &findings, trigger, self.clock.now());
        }
        let _permit = self.recording.acquire().await.expect("the semaphore is never closed");
        let outcome = match decision {
            Decision::Verify { displaced } => self.verify(domain, &findings, trigger, displaced).await?,
            Decision::Update(update) => self.record(domain, &findings, update).await?,
        };
        metrics::counter!("tempmail_domain_checks_total", "result" => outcome.as_str()).increment(1);
        if !matches!(outcome, CheckOutcome::Kept | CheckOutcome::NoAnswer) {
            tracing::info!(domain.id = %domain.id, result = outcome.as_str(), "checked a custom domain");
        }
        Ok(CheckResult {
            txt_found: findings.txt.finding == Finding::Found,
            mx_found: findings.mx.finding == Finding::Found,
            outcome,
        })
    }

    async fn find_records(&self, domain: &DomainToCheck, transport: Transport) -> DomainFindings {
        let expected = ExpectedRecords {
            domain: &domain.name,
            token: &domain.token,
            incumbent_token: domain.incumbent.as_ref().map(|incumbent| incumbent.token.as_str()),
            mx_host: &self.settings.mx_host,
        };
        match &self.resolver {
            Some(resolver) => resolver.find(&expected, transport).await,
            None => DomainFindings::UNKNOWN,
        }
    }

    /// Verifies a domain, unless the database has changed meanwhile.
    async fn verify(
        &self,
        domain: &DomainToCheck,
        findings: &DomainFindings,
        trigger: CheckTrigger,
        displaced: Option<Uuid>,
    ) -> Result<CheckOutcome, StoreError> {
        let now = self.clock.now();
        let installation_names = &self.settings.installation_names;
        let outcome = match self
            .store
            .verify_custom_domain(domain.id, displaced, installation_names, now + RECHECK, now)
            .await?
        {
            VerifyOutcome::Verified => return Ok(CheckOutcome::Verified),
            VerifyOutcome::Transferred => return Ok(CheckOutcome::Transferred),
            VerifyOutcome::Removed => return Ok(CheckOutcome::Kept),
            VerifyOutcome::HeldByIncumbent => CheckOutcome::Kept,
            VerifyOutcome::OverlapsSystemDomain => CheckOutcome::OverlapsSystemDomain,
        };
        match self.record(domain, findings, unverified(domain, trigger, now)).await? {
            CheckOutcome::Failed(reason) => Ok(CheckOutcome::Failed(reason)),
            _ => Ok(outcome),
        }
    }

    /// Records a check that did not verify the domain.
    async fn record(
        &self,
        domain: &DomainToCheck,
        findings: &DomainFindings,
        update: DomainUpdate,
    ) -> Result<CheckOutcome, StoreError> {
        let found = RecordFindings { txt: &findings.txt, mx: &findings.mx };
        let (id, status) = (domain.id, domain.status);
        match update {
            DomainUpdate::Fail(reason) => {
                self.store.fail_custom_domain(id, status, reason, found).await?;
                Ok(CheckOutcome::Failed(reason))
            }
            DomainUpdate::Keep { failed_checks, next_check_at } => {
                self.store.record_domain_check(id, status, found, failed_checks, next_check_at).await?;
                let no_votes =
                    [&findings.txt, &findings.mx].iter().all(|found| found.finding == Finding::Unknown);
                Ok(if no_votes { CheckOutcome::NoAnswer } else { CheckOutcome::Kept })
            }
        }
    }
}
