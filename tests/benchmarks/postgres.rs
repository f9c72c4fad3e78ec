//! Postgres alone, with the settings of `tempmail up`: what its two cores give without mail.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempmail_model::address::{RecipientAddress, Reservation};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use tempmail_store::{AcceptOutcome, DeliveryLimits, MailSummary, NewMail, NewMessage, RawData, Store};
use tempmail_tests::postgres::migrate;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::environment::work_directory;
use crate::measure::print_table;
use crate::stack::{BenchPostgres, DOMAIN};

/// `./tests/bench postgres` options.
#[derive(Debug, Args)]
pub struct PostgresAlone {
    /// Octets a row that can't be compressed: what 3 KB of mail come to
    #[arg(long, default_value_t = ROW)]
    row: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = SECONDS)]
    seconds: u64,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
}

const ROW: usize = 1_800;
const SECONDS: u64 = 5;

/// One measurement.
#[derive(Debug, Clone, Copy)]
enum PostgresWorkload {
    /// A table with nothing but a key and data.
    Plain { clients: usize, batch: usize },
    /// The statement that ingest uses, one connection.
    Accept { batch: usize },
}

impl fmt::Display for PostgresWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { clients, batch } => write!(f, "{clients} clients, {batch} rows a transaction"),
            Self::Accept { batch } => write!(f, "the store alone: accept_mail, {batch} mails a batch"),
        }
    }
}

impl PostgresAlone {
    /// With its defaults, under `work_dir`.
    pub fn in_directory(work_dir: &Path) -> Self {
        Self { row: ROW, seconds: SECONDS, work_dir: work_dir.to_owned() }
    }

    /// Runs all of it and prints the table.
    ///
    /// # Errors
    /// Postgres does not start, or refuses a statement.
    pub async fn run(self) -> anyhow::Result<()> {
        let directory = work_directory(&self.work_dir)?;
        let cluster = BenchPostgres::start(directory.path()).await?;
        let url = cluster.create_database("alone").await?;
        let pool = PgPoolOptions::new().max_connections(40).connect(&url).await?;
        sqlx::query("CREATE TABLE plain (id uuid PRIMARY KEY, data bytea NOT NULL)").execute(&pool).await?;
        sqlx::query("ALTER TABLE plain ALTER COLUMN data SET STORAGE EXTERNAL").execute(&pool).await?;
        let store = Store::connect(&url, 2, "tempmail bench")?;
        let mut rows = Vec::new();
        let workloads = [
            PostgresWorkload::Plain { clients: 32, batch: 1 },
            PostgresWorkload::Plain { clients: 1, batch: 64 },
            PostgresWorkload::Plain { clients: 2, batch: 64 },
            PostgresWorkload::Accept { batch: 8 },
            PostgresWorkload::Accept { batch: 32 },
            PostgresWorkload::Accept { batch: 128 },
        ];
        for workload in workloads {
            let used_before = cluster.cpu();
            let (stored, elapsed) = match workload {
                PostgresWorkload::Plain { clients, batch } => self.plain(&pool, clients, batch).await?,
                PostgresWorkload::Accept { batch } => self.accept(&store, batch).await?,
            };
            let cpu = (cluster.cpu() - used_before) / u32::try_from(stored.max(1))?;
            rows.push(vec![
                workload.to_string(),
                format!("{:.0}", f64::from(u32::try_from(stored)?) / elapsed.as_secs_f64()),
                cpu.as_micros().to_string(),
            ]);
        }
        println!("\nPostgres alone, {} octets a row, durable\n", self.row);
        print_table(&["workload", "rows/s", "CPU us a row"], &rows);
        pool.close().await;
        store.pool().close().await;
        cluster.stop().await;
        Ok(())
    }

    /// Rows that were stored, and in what time.
    async fn plain(&self, pool: &PgPool, clients: usize, batch: usize) -> anyhow::Result<(usize, Duration)> {
        let data = Arc::new(self.data());
        let stored = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let end = started + Duration::from_secs(self.seconds);
        let mut all = JoinSet::new();
        for _ in 0..clients {
            let (pool, data, stored) = (pool.clone(), Arc::clone(&data), Arc::clone(&stored));
            all.spawn(async move {
                let clock = SystemClock::default();
                let mut connection = pool.acquire().await?;
                while Instant::now() < end {
                    let ids: Vec<Uuid> = (0..batch).map(|_| new_id(clock.now())).collect();
                    sqlx::query("INSERT INTO plain SELECT * FROM unnest($1::uuid[], $2::bytea[])")
                        .bind(&ids)
                        .bind(vec![data.as_slice(); batch])
                        .execute(&mut *connection)
                        .await?;
                    stored.fetch_add(batch, Ordering::Relaxed);
                }
                anyhow::Ok(())
            });
        }
        while let Some(client) = all.join_next().await {
            client??;
        }
        Ok((stored.load(Ordering::Relaxed), started.elapsed()))
    }

    /// Mails that were stored, each to an address of its own, and in what time.
    async fn accept(&self, store: &Store, batch: usize) -> anyhow::Result<(usize, Duration)> {
        let clock = SystemClock::default();
        migrate(store).await;
        store.record_free_class(RetentionClass::FREE).await?;
        store.add_system_domain(DOMAIN, None, None, clock.now()).await?;
        store.ensure_message_partition(RetentionClass::FREE, clock.now()).await?;
        store
            .ensure_message_partition(
                RetentionClass::FREE,
                clock.now() + RetentionClass::FREE.partition_width(),
            )
            .await?;
        let rules = DeliveryLimits {
            free_class: RetentionClass::FREE,
            inbox_bytes: 52_428_800,
            tenant_bytes: i64::MAX,
        };
        let data = self.data();
        let mut writer = store.mail_writer().await?;
        let (mut stored, started) = (0, Instant::now());
        while started.elapsed() < Duration::from_secs(self.seconds) {
            let mails = (stored..stored + batch).map(|number| mail(&clock, &data, number));
            let mails = mails.collect::<anyhow::Result<Vec<_>>>()?;
            let outcomes = writer.accept_mail(rules, clock.now(), &mails).await?;
            let all = outcomes.iter().all(|outcome| matches!(outcome, AcceptOutcome::Stored(_)));
            anyhow::ensure!(all, "a mail was not stored");
            stored += batch;
        }
        Ok((stored, started.elapsed()))
    }

    fn data(&self) -> Vec<u8> {
        let mut data = vec![0; self.row];
        StdRng::seed_from_u64(3_072).fill_bytes(&mut data);
        data
    }
}

fn mail(clock: &SystemClock, data: &[u8], number: usize) -> anyhow::Result<NewMail> {
    let now = clock.now();
    let address = RecipientAddress::parse(&format!("{number}alone@{DOMAIN}")).context("a good address")?;
    Ok(NewMail {
        id: new_id(now),
        raw: RawData::Inline(data.to_vec()),
        for_clause_offset: 100,
        sender: "sender@bench.example".into(),
        summary: MailSummary {
            from_text: "Load Generator <sender@bench.example>".into(),
            subject: format!("Your confirmation number {number}"),
            preview:
                "One hundred characters, as most mails have them at their beginning, without any line break."
                    .into(),
            ..MailSummary::default()
        },
        recipients: vec![NewMessage { id: new_id(now), address, reserved: Reservation::None, size: 3_300 }],
    })
}
