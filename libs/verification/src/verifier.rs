//! Looks at the records of custom domains, and carries out what follows. Any number of
//! processes may run the loop over due domains: each is in the hands of one at a time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tempmail_model::clock::Clock;
use tempmail_model::verification::{FailureReason, Finding, RecordFindings};
use tempmail_runtime::config::Config;
use tempmail_store::{DomainToCheck, Store, StoreError, VerifyOutcome};
use uuid::Uuid;

use crate::decision::{CheckTrigger, Decision, DomainUpdate, RECHECK, decide, unverified};
use crate::finding::{DomainFindings, ExpectedRecords};
use crate::resolver::{Resolver, Transport};
use crate::rules::DomainSettings;

/// Checks under way at once.
const IN_FLIGHT: usize = 50;
/// A loop that ends without a word gives its domains back after this long; a check takes less.
const LEASE: Duration = Duration::from_secs(60);

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckResult {
    /// The TXT record is right.
    pub txt_found: bool,
    /// The MX record is right.
    pub mx_found: bool,
    /// What became of the domain.
    pub outcome: CheckOutcome,
}

/// What became of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It is what it was.
    Kept,
    /// The name servers did not tell, so it is what it was.
    NoAnswer,
    /// It serves now.
    Verified,
    /// It serves now, and another tenant has lost the name.
    Transferred,
    /// It failed.
    Failed(FailureReason),
    /// Its records are right, but a system domain meets the name by now.
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
    /// `None`: there is nobody to ask.
    resolver: Option<Resolver>,
    rules: DomainSettings,
}

impl Verifier {
    /// Over a database whose schema is up to date. On a machine without DNS no check finds an
    /// answer, and everything else goes on.
    pub fn new(config: &Config, store: Store, clock: Arc<dyn Clock>) -> Self {
        let resolver = Resolver::new(&config.dns)
            .inspect_err(|error| tracing::warn!("custom domains can't be verified: {error}"))
            .ok();
        Self { store, clock, resolver, rules: DomainSettings::new(config) }
    }

    /// What decides about custom domains.
    pub fn rules(&self) -> &DomainSettings {
        &self.rules
    }

    /// Checks a domain now, because its owner asked; `None` where it is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn check(&self, id: Uuid) -> Result<Option<CheckResult>, StoreError> {
        let Some(domain) = self.store.find_domain_to_check(id).await? else { return Ok(None) };
        self.examine(&domain, CheckTrigger::Requested).await.map(Some)
    }

    /// Checks every domain that is due and that no other loop has in hand. One that fails does
    /// not keep the others.
    ///
    /// # Errors
    /// The first [`StoreError`]; what it concerns is due again when its lease ends.
    pub async fn pass(&self) -> Result<(), StoreError> {
        let done = self.check_due().await;
        if done.is_err() {
            metrics::counter!("tempmail_domain_failed_passes_total").increment(1);
        }
        done
    }

    async fn check_due(&self) -> Result<(), StoreError> {
        // What comes due meanwhile is for the next pass, so that this one ends.
        let now = self.clock.now();
        #[expect(clippy::cast_precision_loss, reason = "a gauge of some thousands")]
        metrics::gauge!("tempmail_domains_due").set(self.store.count_due_domains(now).await? as f64);
        let occasion = CheckTrigger::Scheduled { interval: self.rules.interval };
        let mut result = Ok(());
        let mut in_flight = FuturesUnordered::new();
        let mut is_more = true;
        loop {
            if is_more && in_flight.len() <= IN_FLIGHT / 2 {
                let room = IN_FLIGHT - in_flight.len();
                let claimed = self.store.claim_due_domains(room, LEASE, now).await?;
                is_more = claimed.len() == room;
                in_flight.extend(
                    claimed.into_iter().map(|domain| async move { self.examine(&domain, occasion).await }),
                );
            }
            match in_flight.next().await {
                Some(checked) => result = result.and(checked.map(drop)),
                None => return result,
            }
        }
    }

    async fn examine(
        &self,
        domain: &DomainToCheck,
        occasion: CheckTrigger,
    ) -> Result<CheckResult, StoreError> {
        let mut findings = self.ask(domain, Transport::UdpFirst).await;
        let mut decision = decide(domain, &findings, occasion, self.clock.now());
        if matches!(decision, Decision::Verify { .. }) {
            // An answer over UDP may be forged by whoever guesses well; this one gives a name away.
            findings = self.ask(domain, Transport::TcpOnly).await;
            decision = decide(domain, &findings, occasion, self.clock.now());
        }
        let outcome = match decision {
            Decision::Verify { displaced } => self.verify(domain, &findings, occasion, displaced).await?,
            Decision::Update(standing) => self.record(domain, &findings, standing).await?,
        };
        metrics::counter!("tempmail_domain_checks_total", "result" => outcome.as_str()).increment(1);
        if !matches!(outcome, CheckOutcome::Kept | CheckOutcome::NoAnswer) {
            tracing::info!(domain.id = %domain.id, result = outcome.as_str(), "a custom domain was checked");
        }
        Ok(CheckResult {
            txt_found: findings.txt.finding == Finding::Found,
            mx_found: findings.mx.finding == Finding::Found,
            outcome,
        })
    }

    async fn ask(&self, domain: &DomainToCheck, transport: Transport) -> DomainFindings {
        let question = ExpectedRecords {
            domain: &domain.name,
            token: &domain.token,
            incumbent_token: domain.incumbent.as_ref().map(|incumbent| incumbent.token.as_str()),
            mx_host: &self.rules.mx_host,
        };
        match &self.resolver {
            Some(resolver) => resolver.find(&question, transport).await,
            None => DomainFindings::UNKNOWN,
        }
    }

    /// Makes a domain verified, unless the database knows better by now.
    async fn verify(
        &self,
        domain: &DomainToCheck,
        findings: &DomainFindings,
        occasion: CheckTrigger,
        displaced: Option<Uuid>,
    ) -> Result<CheckOutcome, StoreError> {
        let now = self.clock.now();
        let installation_names = &self.rules.installation_names;
        let refused = match self
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
        match self.record(domain, findings, unverified(domain, occasion, now)).await? {
            CheckOutcome::Failed(reason) => Ok(CheckOutcome::Failed(reason)),
            _ => Ok(refused),
        }
    }

    /// Records the check of a domain that it did not verify.
    async fn record(
        &self,
        domain: &DomainToCheck,
        findings: &DomainFindings,
        standing: DomainUpdate,
    ) -> Result<CheckOutcome, StoreError> {
        let found = RecordFindings { txt: &findings.txt, mx: &findings.mx };
        let (id, status) = (domain.id, domain.status);
        match standing {
            DomainUpdate::Fail(reason) => {
                self.store.fail_custom_domain(id, status, reason, found).await?;
                Ok(CheckOutcome::Failed(reason))
            }
            DomainUpdate::Keep { failed_checks, next_check_at } => {
                self.store.record_domain_check(id, status, found, failed_checks, next_check_at).await?;
                let is_silent =
                    [&findings.txt, &findings.mx].iter().all(|found| found.finding == Finding::Unknown);
                Ok(if is_silent { CheckOutcome::NoAnswer } else { CheckOutcome::Kept })
            }
        }
    }
}
