//! The role that repeats the jobs and delivers to webhooks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::role::RoleFuture;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_verification::Verifier;
use tokio::task::JoinSet;

use crate::maintenance::{self, Resealer, partitions};
use crate::webhook::Dispatcher;

/// What the worker is called in `/readyz`.
const COMPONENT: &str = "worker";

/// Repeats each [`Job`], with the time of its clock: does what is due, then sleeps. A pass that fails is
/// logged and counted, and the job continues.
#[derive(Clone)]
pub struct Worker {
    config: Arc<Config>,
    store: Store,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
    /// `None`: other processes verify custom domains (`worker.verify_domains`).
    verifier: Option<Arc<Verifier>>,
    /// `None`: nothing is sent to webhooks.
    dispatcher: Option<Dispatcher>,
    /// `None`: there are no keys to seal with.
    resealer: Option<Arc<Resealer>>,
}

impl Worker {
    /// A worker over a database whose schema is up to date.
    pub fn new(config: Arc<Config>, store: Store, clock: Arc<dyn Clock>) -> Self {
        let verifier = config
            .worker
            .verify_domains
            .then(|| Arc::new(Verifier::new(&config, store.clone(), Arc::clone(&clock))));
        Self {
            config,
            store,
            clock,
            readiness: Readiness::default(),
            verifier,
            dispatcher: None,
            resealer: None,
        }
    }

    /// Reports in `readiness` whether there are partitions for new mail, not ready until they are created, and whether
    /// webhooks are delivered to.
    #[must_use]
    pub fn with_readiness(self, readiness: Readiness) -> Self {
        readiness.set_not_ready(COMPONENT, "partitions for new mail are being created");
        let dispatcher = self.dispatcher.map(|dispatcher| dispatcher.with_readiness(readiness.clone()));
        Self { readiness, dispatcher, ..self }
    }

    /// Delivers to webhooks too: woken by arrivals on `bus`, with secrets that `keys` (`secrets.keys`) open. Seals
    /// again with the first of these keys what another one sealed.
    ///
    /// # Errors
    /// `webhooks.ca_file` or the system's DNS servers can't be read.
    pub fn with_webhooks(self, bus: SharedBus, keys: &[MasterKey]) -> anyhow::Result<Self> {
        let dispatcher = Dispatcher::new(&self.config, &self.store, Arc::clone(&self.clock), bus, keys)?;
        let resealer = Some(Arc::new(Resealer::new(keys)));
        Ok(Self { dispatcher: Some(dispatcher), resealer, ..self })
    }

    /// Runs until `shutdown` drains: passes that are running finish, and no new one starts.
    ///
    /// # Errors
    /// A job panicked: the process should exit and be restarted.
    pub fn run(self, shutdown: Shutdown) -> RoleFuture {
        Box::pin(self.serve(shutdown))
    }

    async fn serve(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        for job in Job::ALL {
            tasks.spawn(self.clone().repeat(job, shutdown.clone()));
        }
        if let Some(dispatcher) = self.dispatcher {
            tasks.spawn(dispatcher.run(shutdown));
        }
        while let Some(ended) = tasks.join_next().await {
            ended.context("a job of the worker panicked")?;
        }
        Ok(())
    }

    /// Runs one pass of every job, for tests that move the clock.
    ///
    /// # Errors
    /// The first pass that failed; the others still ran.
    pub async fn run_once(&self) -> anyhow::Result<()> {
        let mut result = Ok(());
        for job in Job::ALL {
            let done = self.run_pass(job).await.with_context(|| format!("pass of {}", job.name()));
            result = result.and(done);
        }
        result
    }

    async fn repeat(self, job: Job, shutdown: Shutdown) {
        while !shutdown.drain.is_cancelled() {
            tokio::select! {
                done = self.run_pass(job) => if let Err(error) = done {
                    metrics::counter!("tempmail_worker_failed_passes_total", "job" => job.name()).increment(1);
                    tracing::error!(job = job.name(), error = format!("{error:#}"), "a pass of the worker failed");
                },
                () = shutdown.stop.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(job.period()) => {}
                () = shutdown.drain.cancelled() => return,
            }
        }
    }

    async fn run_pass(&self, job: Job) -> anyhow::Result<()> {
        let (store, now) = (&self.store, self.clock.now());
        match job {
            Job::CreatePartitions => {
                let created = partitions::create_ahead(store, self.config.retention.free_hours, now).await;
                match &created {
                    Ok(()) => self.readiness.set_ready(COMPONENT),
                    Err(_) => {
                        self.readiness.set_not_ready(COMPONENT, "partitions for new mail can't be created");
                    }
                }
                created
            }
            Job::DropPartitions => partitions::drop_expired(store, now).await,
            Job::Purge => maintenance::carry_out_purges(store).await,
            Job::Cleanup => maintenance::clean_up(store, &self.config.limits, now).await,
            Job::VerifyDomains => match &self.verifier {
                Some(verifier) => Ok(verifier.check_due().await?),
                None => Ok(()),
            },
            Job::LogAudit => maintenance::log_audit_trail(store, now).await,
            Job::Reseal => match &self.resealer {
                Some(resealer) => resealer.run(store).await,
                None => Ok(()),
            },
        }
    }
}

/// A job that a worker repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Creates partitions before mail needs them.
    CreatePartitions,
    /// Detaches and drops partitions whose mail has expired.
    DropPartitions,
    /// Carries out deletions that owners requested.
    Purge,
    /// Removes idle mailboxes, released addresses, tokens that ended a week ago.
    Cleanup,
    /// Checks the DNS records of custom domains that are due.
    VerifyDomains,
    /// Sends new entries of the audit trail to the log.
    LogAudit,
    /// Seals again with the first key what another key of the ring sealed.
    Reseal,
}

impl Job {
    /// Every job, in the order in which a single pass of all of them runs.
    pub(crate) const ALL: [Self; 7] = [
        Self::CreatePartitions,
        Self::VerifyDomains,
        Self::Cleanup,
        Self::Purge,
        Self::DropPartitions,
        Self::LogAudit,
        Self::Reseal,
    ];

    /// Its name in metrics and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CreatePartitions => "create_partitions",
            Self::DropPartitions => "drop_partitions",
            Self::Purge => "purge",
            Self::Cleanup => "cleanup",
            Self::VerifyDomains => "verify_domains",
            Self::LogAudit => "log_audit",
            Self::Reseal => "reseal",
        }
    }

    /// Time between the end of a pass and the next one.
    pub(crate) fn period(self) -> Duration {
        Duration::from_secs(match self {
            Self::CreatePartitions | Self::DropPartitions => 30,
            Self::Purge => 1,
            Self::Cleanup | Self::Reseal => 300,
            Self::VerifyDomains | Self::LogAudit => 5,
        })
    }
}
