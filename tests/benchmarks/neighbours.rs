//! `./tests/bench neighbours`: whether one tenant or SMTP client can slow down the mail of others. A
//! steady flow of small probe mails is measured alone, and then while each neighbour generates load.
//! tempmail runs as a separate process; `--program` measures another version.

mod large_mail;
mod probe;
mod session;
mod tag_tenant;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde_json::Value;
use tokio::time::Instant;

use crate::environment;
use crate::environment::{describe_machine, work_directory};
use crate::measure::{Rounds, millis, print_table};
use crate::server::{RunningServer, Server, Tempmail};
use large_mail::LargeMailSender;
use probe::{ProbeReport, ProbeSender};
use tag_tenant::TagTenant;

/// System domain of `tempmail up`.
const DOMAIN: &str = "inbox.localhost";
/// Seconds of probe mail before a measurement that are not counted, so that earlier work is finished.
const WARM_UP: u32 = 3;
/// Time that a neighbour runs before the measurement starts.
const LEAD: Duration = Duration::from_secs(1);

/// `./tests/bench neighbours` options.
#[derive(Debug, Args)]
pub struct Neighbours {
    /// Path of tempmail; default: the one beside this program
    #[arg(long)]
    program: Option<PathBuf>,
    /// Measure only these neighbours
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Neighbour::Tags, Neighbour::Large])]
    only: Vec<Neighbour>,
    /// Seconds a measurement
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Rounds, each over a program and data of its own; the median counts
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Probe mails a second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Messages in the mailbox of the neighbour `tags`, in hundreds
    #[arg(long, default_value_t = 40_000)]
    messages: usize,
    /// Connections of the neighbour `large`
    #[arg(long, default_value_t = 12)]
    connections: usize,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
}

/// The load beside the probe mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Neighbour {
    /// No load: the base of all ratios.
    #[value(skip)]
    Baseline,
    /// A tenant that deletes the mail of one tag after the other from a nearly full mailbox, and receives mail.
    Tags,
    /// An SMTP client that sends mails of 25 MB over all of its connections.
    Large,
}

impl std::fmt::Display for Neighbour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Tags => "tags",
            Self::Large => "large",
        })
    }
}

/// Addresses and credentials of a running tempmail.
#[derive(Debug, Clone)]
struct TempmailEndpoints {
    smtp: SocketAddr,
    http: SocketAddr,
    pro_token: String,
    live_token: String,
}

/// Results of the probe mails beside one neighbour over all rounds; times in milliseconds.
#[derive(Debug)]
struct NeighbourFigures {
    neighbour: Neighbour,
    mails: usize,
    refused: usize,
    /// From the end of data to the answer.
    p50: Rounds,
    p99: Rounds,
    max: Rounds,
    /// From when a mail was due to its reply, including connecting and recipients.
    whole_p99: Rounds,
    did: Vec<String>,
}

impl Neighbours {
    /// Runs all rounds and prints the table.
    ///
    /// # Errors
    /// The program does not start, or the mailbox can't be filled.
    pub async fn run(self) -> anyhow::Result<()> {
        tempmail_tests::open_files::raise_limit();
        let program = environment::tempmail_program(self.program.as_deref())?;
        let program = fs::canonicalize(&program).with_context(|| program.display().to_string())?;
        let neighbours = [Neighbour::Tags, Neighbour::Large].into_iter().filter(|it| self.only.contains(it));
        let mut all: Vec<NeighbourFigures> =
            std::iter::once(Neighbour::Baseline).chain(neighbours).map(NeighbourFigures::new).collect();
        println!("{}", program.display());
        for round in 1..=self.rounds {
            let directory = work_directory(&self.work_dir)?;
            println!("{}", describe_machine(directory.path())?);
            let server = Server::Tempmail(Tempmail { program: program.clone() });
            let running = server.start(directory.path()).await?;
            let outcome = self.round(round, &running, directory.path(), &mut all).await;
            running.stop().await?;
            outcome?;
        }
        self.print(&all);
        Ok(())
    }

    async fn round(
        &self,
        round: usize,
        running: &RunningServer,
        directory: &Path,
        all: &mut [NeighbourFigures],
    ) -> anyhow::Result<()> {
        let endpoints = TempmailEndpoints::read(running.smtp, directory)?;
        let mut tags = None;
        if self.only.contains(&Neighbour::Tags) {
            // Before all measurements, so that they run on the same data.
            tags = Some(
                TagTenant::fill(&endpoints, self.messages).await.context("the mailbox can't be filled")?,
            );
        }
        let large = LargeMailSender::new(endpoints.smtp, self.connections);
        let mut probe = ProbeSender::new(endpoints.smtp, self.rate);
        for figures in all {
            let before = probe.run(WARM_UP).await?;
            println!("round {round}: before {}: {before}", figures.neighbour);
            let until = Instant::now() + LEAD + Duration::from_secs(self.seconds.into());
            let beside = async {
                match (figures.neighbour, &tags) {
                    (Neighbour::Tags, Some(tags)) => tags.run(until).await,
                    (Neighbour::Large, _) => large.run(until).await,
                    _ => Ok("-".to_owned()),
                }
            };
            let measurement = async {
                tokio::time::sleep(LEAD).await;
                probe.run(self.seconds).await
            };
            let (did, measured) = tokio::join!(beside, measurement);
            let (did, measured) = (did?, measured?);
            println!("round {round}: beside {}: {measured}; neighbour: {did}", figures.neighbour);
            figures.push(&measured, did);
        }
        Ok(())
    }

    fn print(&self, all: &[NeighbourFigures]) {
        println!(
            "\n{} probe mails/s for {} s, alone and beside each neighbour, {} rounds; ms from the end of \
             data to the reply, their ratio to the baseline, and ms from when a mail was due; a mail without \
             a reply in {} s counts as that time\n",
            self.rate,
            self.seconds,
            self.rounds,
            session::TIMEOUT.as_secs()
        );
        let Some(baseline) = all.first() else { return };
        let cell = |figure: &Rounds, decimals: usize| {
            if self.rounds == 1 { format!("{:.decimals$}", figure.last()) } else { figure.summary(decimals) }
        };
        let rows = all.iter().map(|figures| {
            vec![
                figures.neighbour.to_string(),
                figures.mails.to_string(),
                figures.refused.to_string(),
                cell(&figures.p50, 2),
                cell(&figures.p99, 2),
                cell(&figures.max, 1),
                cell(&figures.p50.ratio_to(&baseline.p50), 2),
                cell(&figures.p99.ratio_to(&baseline.p99), 2),
                cell(&figures.whole_p99, 2),
                figures.did.join("; "),
            ]
        });
        let head = [
            "neighbour",
            "probe mails",
            "refused",
            "p50 ms",
            "p99 ms",
            "max ms",
            "ratio p50",
            "ratio p99",
            "since due: p99 ms",
            "work of the neighbour",
        ];
        print_table(&head, &rows.collect::<Vec<_>>());
    }
}

impl NeighbourFigures {
    fn new(neighbour: Neighbour) -> Self {
        Self {
            neighbour,
            mails: 0,
            refused: 0,
            p50: Rounds::default(),
            p99: Rounds::default(),
            max: Rounds::default(),
            whole_p99: Rounds::default(),
            did: Vec::new(),
        }
    }

    fn push(&mut self, measured: &ProbeReport, did: String) {
        self.mails += measured.outcomes.total();
        self.refused += measured.outcomes.total() - measured.outcomes.accepted();
        self.p50.push(millis(measured.waits.p50()));
        self.p99.push(millis(measured.waits.p99()));
        self.max.push(millis(measured.waits.max()));
        self.whole_p99.push(millis(measured.whole.p99()));
        self.did.push(did);
    }
}

impl TempmailEndpoints {
    /// Reads the credentials that tempmail wrote to its data directory under `directory`.
    fn read(smtp: SocketAddr, directory: &Path) -> anyhow::Result<Self> {
        let credentials = fs::read_to_string(directory.join("tempmail/credentials.json"))?;
        let credentials: Value = serde_json::from_str(&credentials)?;
        let text = |key: &str| {
            let value = credentials[key].as_str();
            value.map(str::to_owned).with_context(|| format!("credentials.json has no {key}"))
        };
        let base_url = text("base_url")?;
        let http = base_url.strip_prefix("http://").and_then(|authority| authority.parse().ok());
        let http: SocketAddr =
            http.with_context(|| format!("{base_url} is no http:// with an IP address"))?;
        ensure!(http.ip().is_loopback(), "{http} is not on loopback");
        Ok(Self { smtp, http, pro_token: text("pro_token")?, live_token: text("live_token")? })
    }
}
