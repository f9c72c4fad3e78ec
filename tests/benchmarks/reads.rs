//! `./tests/bench http`: the reads that clients repeat, over a database with few mails and one
//! with many in the same partitions, beside nginx with a file of the answer's octets. All are
//! measured in turn, round after round, by the same generator; `wrk` says what nginx gives at most.

mod filled_database;
mod generator;
mod read_server;
mod wrk;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::environment;
use crate::environment::{describe_machine, work_directory};
use crate::http::HttpClient;
use crate::measure::{Rounds, millis, print_table};
use crate::stack::BenchPostgres;
use filled_database::FilledDatabase;
use read_server::ReadServer;

/// `./tests/bench http` options.
#[derive(Debug, Args)]
pub struct Reads {
    /// Mails stored in the many
    #[arg(long, default_value_t = 1_000_000)]
    stored: usize,
    /// Mails stored in the few
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// Octets a mail
    #[arg(long, default_value_t = 3_072)]
    size: usize,
    /// Kept connections
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Threads of the generator, and of wrk
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Path of tempmail; default: the one beside this program
    #[arg(long)]
    tempmail: Option<PathBuf>,
    /// nginx
    #[arg(long, env = "NGINX", default_value = "nginx")]
    nginx: PathBuf,
    /// wrk
    #[arg(long, env = "WRK", default_value = "wrk")]
    wrk: PathBuf,
}

/// A kind of read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// A long-poll with a cursor that finds mail at once: 10 mails.
    Inbox,
    /// A full message.
    Email,
    /// The first page of a mailbox: 30 mails.
    Messages,
}

impl ReadKind {
    const ALL: [Self; 3] = [Self::Inbox, Self::Email, Self::Messages];

    fn name(self) -> &'static str {
        match self {
            Self::Inbox => "GET /v1/inbox/<address>?since=",
            Self::Email => "GET /v1/email/<id>",
            Self::Messages => "GET /api/messages",
        }
    }

    /// The file that stands for its answer.
    fn file(self) -> &'static str {
        match self {
            Self::Inbox => "inbox.json",
            Self::Email => "email.json",
            Self::Messages => "messages.json",
        }
    }
}

/// A GET that is ready to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub target: String,
    /// The header field with the credential.
    pub credential: String,
}

/// Results of one server for one kind of read over all rounds.
#[derive(Debug, Default)]
struct ReadFigures {
    rate: Rounds,
    p50: Rounds,
    p99: Rounds,
    /// Processor time a request, in microseconds: of the server, and of Postgres behind it.
    server: Rounds,
    postgres: Rounds,
}

/// Results of all servers for one kind of read.
#[derive(Debug)]
struct ReadResults {
    read: ReadKind,
    /// Octets of the answer that nginx gives.
    octets: usize,
    few: ReadFigures,
    many: ReadFigures,
    nginx: ReadFigures,
    wrk: ReadFigures,
}

/// The running servers.
struct Servers {
    cluster: BenchPostgres,
    few: (FilledDatabase, ReadServer),
    many: (FilledDatabase, ReadServer),
    nginx: ReadServer,
    has_wrk: bool,
}

impl Reads {
    /// Runs all of it and prints the table.
    ///
    /// # Errors
    /// A server does not start, or an answer is not 200.
    pub async fn run(self) -> anyhow::Result<()> {
        let directory = work_directory(&self.work_dir)?;
        println!("{}", describe_machine(directory.path())?);
        let (servers, mut all) = self.start(directory.path()).await?;
        for round in 1..=self.rounds {
            for results in &mut all {
                self.turn(&servers, results).await?;
                println!("round {round} of {}: {}", self.rounds, results.line());
            }
        }
        self.print(&servers, &all);
        for reading in [servers.few.1, servers.many.1, servers.nginx] {
            reading.process.stop().await?;
        }
        servers.cluster.stop().await;
        Ok(())
    }

    async fn start(&self, directory: &Path) -> anyhow::Result<(Servers, Vec<ReadResults>)> {
        let program = environment::tempmail_program(self.tempmail.as_deref())?;
        let cluster = BenchPostgres::start(directory).await?;
        let mut filled = Vec::new();
        for (name, mails) in [("few", self.few), ("many", self.stored)] {
            let url = cluster.create_database(name).await?;
            let stored = FilledDatabase::fill(url, mails, self.size, self.connections).await?;
            let reading = ReadServer::tempmail(&program, &stored, directory).await?;
            println!("{name}: {} mails are stored", stored.mails);
            filled.push((stored, reading));
        }
        let [few, many] = <[_; 2]>::try_from(filled).map_err(|_| anyhow::anyhow!("two are filled"))?;
        let mut files = Vec::new();
        for read in ReadKind::ALL {
            files.push((read, sample(&many, read).await?));
        }
        let nginx = ReadServer::nginx(&self.nginx, &files, directory).await?;
        let has_wrk = wrk::run(&self.wrk, nginx.http, ReadKind::Inbox.file(), 1, 1, 1).await.is_ok();
        if !has_wrk {
            println!("wrk: left out; `apt-get install wrk`, or name one by WRK");
        }
        let all = files.into_iter().map(|(read, octets)| ReadResults {
            read,
            octets: octets.len(),
            few: ReadFigures::default(),
            many: ReadFigures::default(),
            nginx: ReadFigures::default(),
            wrk: ReadFigures::default(),
        });
        Ok((Servers { cluster, few, many, nginx, has_wrk }, all.collect()))
    }

    /// One kind of read, one server after the other.
    async fn turn(&self, servers: &Servers, results: &mut ReadResults) -> anyhow::Result<()> {
        let read = results.read;
        for ((stored, reading), figures) in
            [(&servers.few, &mut results.few), (&servers.many, &mut results.many)]
        {
            let requests = |connection| stored.requests(read, connection, 10_000);
            let requests = (0..self.connections).map(requests).collect();
            self.measure(reading, &servers.cluster, requests, figures).await?;
        }
        let request = Request { target: format!("/{}", read.file()), credential: "Accept: */*".into() };
        let requests = vec![vec![request]; self.connections];
        self.measure(&servers.nginx, &servers.cluster, requests, &mut results.nginx).await?;
        if servers.has_wrk {
            let (server, file) = (servers.nginx.http, read.file());
            let report =
                wrk::run(&self.wrk, server, file, self.connections, self.threads, self.seconds).await?;
            results.wrk.rate.push(report.rate);
            results.wrk.p50.push(report.p50);
            results.wrk.p99.push(report.p99);
        }
        Ok(())
    }

    async fn measure(
        &self,
        reading: &ReadServer,
        cluster: &BenchPostgres,
        requests: Vec<Vec<Request>>,
        figures: &mut ReadFigures,
    ) -> anyhow::Result<()> {
        let (server, postgres) = (reading.process.cpu(), cluster.cpu());
        let span = Duration::from_secs(self.seconds);
        let report = generator::run(reading.http, requests, span, self.threads).await?;
        let answers = u32::try_from(report.answers.max(1))?;
        figures.rate.push(report.rate());
        figures.p50.push(millis(report.latencies.p50()));
        figures.p99.push(millis(report.latencies.p99()));
        figures.server.push(millis((reading.process.cpu() - server) / answers) * 1e3);
        figures.postgres.push(millis((cluster.cpu() - postgres) / answers) * 1e3);
        Ok(())
    }

    fn print(&self, servers: &Servers, all: &[ReadResults]) {
        println!(
            "\n{} and {} stored mails, {} connections, {} s a measurement, {} rounds, median (min-max)\n",
            servers.few.0.mails, servers.many.0.mails, self.connections, self.seconds, self.rounds
        );
        let mut rows = Vec::new();
        for results in all {
            let mut add = |who: String, figures: &ReadFigures, ratio: String| {
                rows.push(vec![
                    results.read.name().to_owned(),
                    who,
                    figures.rate.summary(0),
                    figures.p50.summary(2),
                    figures.p99.summary(2),
                    figures.server.summary(0),
                    figures.postgres.summary(0),
                    figures.rate.ratio_to(&results.nginx.rate).summary(2),
                    ratio,
                ]);
            };
            let to_few = results.many.rate.ratio_to(&results.few.rate).summary(2);
            add(format!("{} mails", servers.few.0.mails), &results.few, String::new());
            add(format!("{} mails", servers.many.0.mails), &results.many, to_few);
            add(format!("nginx, {} octets", results.octets), &results.nginx, String::new());
            if servers.has_wrk {
                add("nginx, by wrk".into(), &results.wrk, String::new());
            }
        }
        let head = [
            "read",
            "from",
            "requests/s",
            "p50 ms",
            "p99 ms",
            "server us",
            "Postgres us",
            "of nginx",
            "many of few",
        ];
        print_table(&head, &rows);
    }
}

impl ReadResults {
    fn line(&self) -> String {
        format!(
            "{}: few {:.0}/s, many {:.0}/s, nginx {:.0}/s",
            self.read.name(),
            self.few.rate.last(),
            self.many.rate.last(),
            self.nginx.rate.last()
        )
    }
}

/// The answer of a read, as it is.
async fn sample((stored, reading): &(FilledDatabase, ReadServer), read: ReadKind) -> anyhow::Result<Vec<u8>> {
    let request = stored.requests(read, 0, 1).pop().context("there is nothing to read")?;
    let mut client = HttpClient::connect(reading.http).await?;
    let answer = client.get_with(&request.target, &request.credential).await?;
    ensure!(answer.status == 200, "{} was answered with {}", request.target, answer.status);
    Ok(answer.body)
}
