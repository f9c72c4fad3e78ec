//! Background work: partitions ahead of time, expired partitions, large deletions, things that end by
//! themselves, the records of custom domains, and what webhooks are told.
//!
//! Webhooks have a module of their own. Every other loop takes the time from [`Clock`], does what is
//! due, and sleeps. A pass that fails is logged and counted, and the loop lives. Several workers at
//! once do no harm: what two of them would both do is taken under a lock, or already done for the
//! second.

mod partitions;
mod purge;
mod upkeep;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_verification::Verifier;
use tokio::task::JoinSet;

use self::webhook::Dispatcher;

/// The role that runs the loops.
#[derive(Clone)]
pub struct Worker {
    config: Arc<Config>,
    store: Store,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
    /// `None`: others look at custom domains (`worker.verify_domains`).
    verifier: Option<Arc<Verifier>>,
    /// `None`: nothing is sent to webhooks.
    dispatcher: Option<Dispatcher>,
}

/// One of the loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Makes partitions before mail needs them.
    PartitionsAhead,
    /// Detaches and drops partitions whose mail has expired.
    ExpiredPartitions,
    /// Carries out deletions that owners asked for.
    Purge,
    /// Removes idle mailboxes, released addresses, tokens that ended a week ago.
    Upkeep,
    /// Looks at the records of custom domains that are due.
    VerifyDomains,
}

impl Job {
    /// In the order in which one pass of everything runs them.
    const ALL: [Self; 5] =
        [Self::PartitionsAhead, Self::VerifyDomains, Self::Upkeep, Self::Purge, Self::ExpiredPartitions];

    fn name(self) -> &'static str {
        match self {
            Self::PartitionsAhead => "partitions_ahead",
            Self::ExpiredPartitions => "expired_partitions",
            Self::Purge => "purge",
            Self::Upkeep => "upkeep",
            Self::VerifyDomains => "verify_domains",
        }
    }

    /// Time between the end of a pass and the next one.
    fn period(self) -> Duration {
        Duration::from_secs(match self {
            Self::PartitionsAhead | Self::ExpiredPartitions => 30,
            Self::Purge => 1,
            Self::Upkeep => 300,
            Self::VerifyDomains => 5,
        })
    }
}

/// What the worker shows in `/readyz`.
const COMPONENT: &str = "worker";

impl Worker {
    /// A worker over a database whose schema is up to date.
    pub fn new(config: Arc<Config>, store: Store, clock: Arc<dyn Clock>) -> Self {
        let verifier = config
            .worker
            .verify_domains
            .then(|| Arc::new(Verifier::new(&config, store.clone(), Arc::clone(&clock))));
        Self { config, store, clock, readiness: Readiness::default(), verifier, dispatcher: None }
    }

    /// Shows in `readiness` whether there are partitions for new mail; so far there are none.
    #[must_use]
    pub fn with_readiness(self, readiness: Readiness) -> Self {
        readiness.set_not_ready(COMPONENT, "partitions for new mail are being made");
        Self { readiness, ..self }
    }

    /// Sends to webhooks too: woken by what comes over `bus`, with secrets that `keys`
    /// (`secrets.keys`) open.
    ///
    /// # Errors
    /// `webhooks.ca_file` or the system's DNS servers can't be read.
    pub fn with_webhooks(self, bus: SharedBus, keys: &[MasterKey]) -> anyhow::Result<Self> {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let dispatcher = Dispatcher::new(&self.config, store, clock, bus, keys)?;
        Ok(Self { dispatcher: Some(dispatcher), ..self })
    }

    /// Runs the loops until `shutdown` asks to drain: passes in hand end, no new one starts.
    ///
    /// # Errors
    /// A loop panicked: the process should end and be started again.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut loops = JoinSet::new();
        for job in Job::ALL {
            loops.spawn(self.clone().repeat(job, shutdown.clone()));
        }
        if let Some(dispatcher) = self.dispatcher {
            loops.spawn(dispatcher.run(shutdown));
        }
        while let Some(ended) = loops.join_next().await {
            ended.context("a loop of the worker panicked")?;
        }
        Ok(())
    }

    /// One pass of every loop, for tests that move the clock.
    ///
    /// # Errors
    /// The first pass that failed; the others still ran.
    pub async fn run_once(&self) -> anyhow::Result<()> {
        let mut result = Ok(());
        for job in Job::ALL {
            let done = self.once(job).await.with_context(|| format!("pass of {}", job.name()));
            result = result.and(done);
        }
        result
    }

    async fn repeat(self, job: Job, shutdown: Shutdown) {
        while !shutdown.drain.is_cancelled() {
            tokio::select! {
                done = self.once(job) => if let Err(error) = done {
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

    async fn once(&self, job: Job) -> anyhow::Result<()> {
        match job {
            Job::PartitionsAhead => {
                let done = self.create_partitions_ahead().await;
                match &done {
                    Ok(()) => self.readiness.set_ready(COMPONENT),
                    Err(_) => {
                        self.readiness.set_not_ready(COMPONENT, "partitions for new mail can't be made")
                    }
                }
                done
            }
            Job::ExpiredPartitions => self.drop_expired_partitions().await,
            Job::Purge => self.carry_out_purges().await,
            Job::Upkeep => self.tidy_up().await,
            Job::VerifyDomains => match &self.verifier {
                Some(verifier) => Ok(verifier.check_due().await?),
                None => Ok(()),
            },
        }
    }
}
