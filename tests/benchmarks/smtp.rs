//! `./tests/bench smtp`: every server in turn gets the same mail, round after round, and is
//! compared with `smtp-sink` of the same round. What tempmail accepted is read back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use tokio::process::Command;

use crate::environment::{self, describe_machine, work_directory};
use crate::load::{Connections, Recipients, SmtpLoad};
use crate::mail::Mails;
use crate::measure::{Rounds, millis, print_table};
use crate::postgres;
use crate::server::{RunningServer, Server, Tempmail};

/// `./tests/bench smtp` options.
#[derive(Debug, Args)]
pub struct Comparison {
    /// Mails a measurement
    #[arg(long, default_value_t = 20_000)]
    mails: usize,
    /// Connections at a time
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Octets a mail
    #[arg(long, default_value_t = 3_072)]
    size: usize,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Let smtp-source send a text of words in place of its lines of `X`, which compress to nothing
    #[arg(long)]
    text: bool,
    /// Measure these servers alone, by the first letters of their names
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leave out Postgres alone
    #[arg(long)]
    no_postgres: bool,
    /// Directory for data and queues, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Path of tempmail; default: the one beside this program
    #[arg(long)]
    tempmail: Option<PathBuf>,
    /// Path of Inbucket
    #[arg(long, env = "INBUCKET")]
    inbucket: Option<PathBuf>,
    /// Path of Mailpit
    #[arg(long, env = "MAILPIT")]
    mailpit: Option<PathBuf>,
    /// Path of MailHog
    #[arg(long, env = "MAILHOG")]
    mailhog: Option<PathBuf>,
}

/// A workload that every round repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmtpWorkload {
    /// By `smtp-source`.
    Source(Connections),
    /// By our own generator; with commands in groups or not.
    Own(Connections, bool),
}

impl SmtpWorkload {
    const ALL: [Self; 5] = [
        Self::Source(Connections::New),
        Self::Source(Connections::Kept),
        Self::Own(Connections::New, false),
        Self::Own(Connections::Kept, false),
        Self::Own(Connections::Kept, true),
    ];

    /// Short, for addresses.
    fn label(self) -> &'static str {
        match self {
            Self::Source(Connections::New) => "sn",
            Self::Source(Connections::Kept) => "sk",
            Self::Own(Connections::New, _) => "on",
            Self::Own(Connections::Kept, false) => "ok",
            Self::Own(Connections::Kept, true) => "op",
        }
    }

    fn name(self) -> String {
        match self {
            Self::Source(kind) => format!("smtp-source, {kind}"),
            Self::Own(kind, false) => format!("own generator, {kind}"),
            Self::Own(kind, true) => format!("own generator, {kind}, pipelined"),
        }
    }
}

/// Results of one server over all rounds.
#[derive(Debug)]
struct ServerFigures {
    server: Server,
    workloads: Vec<WorkloadFigures>,
}

/// Results of one server with one workload.
#[derive(Debug)]
struct WorkloadFigures {
    workload: SmtpWorkload,
    rate: Rounds,
    /// Processor time of the server a mail, in microseconds.
    cpu: Rounds,
    /// Latency of the `250`, in milliseconds; only by our own generator.
    p50: Rounds,
    p99: Rounds,
    max: Rounds,
}

impl Comparison {
    /// Runs all rounds and prints the tables.
    ///
    /// # Errors
    /// A server does not start, refuses mail, or lost some.
    pub async fn run(self) -> anyhow::Result<()> {
        let directory = work_directory(&self.work_dir)?;
        let mut all: Vec<ServerFigures> = self.servers()?.into_iter().map(ServerFigures::new).collect();
        println!("{}", describe_machine(directory.path())?);
        if self.text {
            write_text(&directory.path().join("text"), self.size)?;
        }
        for round in 1..=self.rounds {
            for workload in SmtpWorkload::ALL {
                for figures in &mut all {
                    self.turn(figures, workload, round, directory.path()).await?;
                }
            }
        }
        self.print(&all);
        if !self.no_postgres {
            postgres::PostgresAlone::in_directory(&self.work_dir).run().await?;
        }
        Ok(())
    }

    fn servers(&self) -> anyhow::Result<Vec<Server>> {
        let program = environment::tempmail_program(self.tempmail.as_deref())?;
        let mut servers = vec![Server::SmtpSink, Server::Tempmail(Tempmail { program })];
        if nix::unistd::geteuid().is_root() {
            servers.push(Server::Postfix);
        } else {
            println!("Postfix: left out, it can only be started by root");
        }
        let mut add = |variable: &'static str, program: Option<&Path>, server: fn(PathBuf) -> Server| {
            match program {
                Some(program) => servers.push(server(fs::canonicalize(program).context(variable)?)),
                None => println!("{variable}: left out, the variable names no program"),
            }
            anyhow::Ok(())
        };
        add("INBUCKET", self.inbucket.as_deref(), Server::Inbucket)?;
        add("MAILPIT", self.mailpit.as_deref(), Server::Mailpit)?;
        add("MAILHOG", self.mailhog.as_deref(), Server::MailHog)?;
        let wanted = |server: &Server| {
            let name = server.name().to_lowercase();
            self.only.is_empty() || self.only.iter().any(|only| name.starts_with(&only.to_lowercase()))
        };
        servers.retain(wanted);
        Ok(servers)
    }

    /// One server's turn in one round of one workload, if it takes part in that.
    async fn turn(
        &self,
        figures: &mut ServerFigures,
        workload: SmtpWorkload,
        round: usize,
        directory: &Path,
    ) -> anyhow::Result<()> {
        let name = figures.server.name();
        let Some(measured) = figures.workloads.iter_mut().find(|measured| measured.workload == workload)
        else {
            return Ok(());
        };
        let running = figures.server.start(directory).await?;
        let label = format!("r{round}{}", workload.label());
        let warm_up = SmtpLoad {
            mails: self.mails.min(1_000),
            label: format!("{label}warm"),
            ..self.load(&running, Connections::Kept)
        };
        warm_up.run().await.with_context(|| format!("{name}, warm-up"))?;
        let outcome = self.measure(&running, measured, &label, directory).await;
        let line = outcome.with_context(|| format!("{name}, {}", workload.name()))?;
        println!("round {round}: {}: {name}: {line}", workload.name());
        running.stop().await
    }

    async fn measure(
        &self,
        running: &RunningServer,
        measured: &mut WorkloadFigures,
        label: &str,
        directory: &Path,
    ) -> anyhow::Result<String> {
        let (kind, pipelined) = match measured.workload {
            SmtpWorkload::Source(kind) => (kind, false),
            SmtpWorkload::Own(kind, pipelined) => (kind, pipelined),
        };
        let load = SmtpLoad { label: label.into(), pipelined, ..self.load(running, kind) };
        let used_before = running.cpu();
        let mut line = if matches!(measured.workload, SmtpWorkload::Source(_)) {
            let rate = self.smtp_source(&load, directory).await?;
            measured.rate.push(rate);
            format!("{rate:.0} msg/s")
        } else {
            let report = load.run().await?;
            measured.rate.push(report.rate());
            measured.p50.push(millis(report.latencies.p50()));
            measured.p99.push(millis(report.latencies.p99()));
            measured.max.push(millis(report.latencies.max()));
            report.to_string()
        };
        let cpu = (running.cpu() - used_before).div_f64(self.mails as f64);
        measured.cpu.push(millis(cpu) * 1e3);
        line.push_str(&format!("; server {} us of CPU a mail", cpu.as_micros()));
        if let Some(reader) = &running.reader {
            let read = reader.verify((1..=self.mails).map(|number| load.recipient(number))).await?;
            line.push_str(&format!("; all {read} read back"));
        }
        Ok(line)
    }

    fn load(&self, running: &RunningServer, kind: Connections) -> SmtpLoad {
        SmtpLoad {
            addr: running.smtp,
            connections: self.connections,
            mails: self.mails,
            size: self.size,
            pipelined: false,
            recipients: Recipients::Many,
            kind,
            domain: "inbox.localhost".into(),
            label: String::new(),
            limit_seconds: 600,
        }
    }

    /// Sends the same load by `smtp-source`, which numbers addresses as we do.
    async fn smtp_source(&self, load: &SmtpLoad, directory: &Path) -> anyhow::Result<f64> {
        let mut command = Command::new("/usr/sbin/smtp-source");
        command
            .args(["-N", "-s", &load.connections.to_string(), "-m", &load.mails.to_string()])
            .args(["-M", "bench.example", "-f", "sender@bench.example"])
            .args(["-t", &format!("{}@{}", load.label, load.domain)])
            .kill_on_drop(true);
        if self.text {
            command.arg("-F").arg(directory.join("text"));
        } else {
            command.args(["-l", &load.size.to_string()]);
        }
        if load.kind == Connections::Kept {
            command.arg("-d");
        }
        command.arg(load.addr.to_string());
        let started = Instant::now();
        let status = command.status().await.context("smtp-source can't be started")?;
        let elapsed = started.elapsed();
        ensure!(status.success(), "smtp-source ended with {status}");
        Ok(load.mails as f64 / elapsed.as_secs_f64())
    }

    fn print(&self, all: &[ServerFigures]) {
        println!(
            "\n{} mails of {} octets a measurement, {} connections, {} rounds; msg/s as median (min-max), \
             share of smtp-sink of the same round, processor time of the server a mail\n",
            self.mails, self.size, self.connections, self.rounds
        );
        let sink = all.iter().find(|figures| matches!(figures.server, Server::SmtpSink));
        let share = |measured: &WorkloadFigures| {
            let base =
                sink.and_then(|sink| sink.workloads.iter().find(|base| base.workload == measured.workload));
            base.map_or_else(|| "-".into(), |base| measured.rate.ratio_to(&base.rate).summary(2))
        };
        let by_source = all.iter().map(|figures| {
            let workloads = figures
                .workloads
                .iter()
                .filter(|measured| matches!(measured.workload, SmtpWorkload::Source(_)));
            let cells = workloads
                .flat_map(|measured| [measured.rate.summary(0), share(measured), measured.cpu.summary(0)]);
            std::iter::once(figures.server.name().to_owned()).chain(cells).collect()
        });
        let head = [
            "by smtp-source",
            "new connections: msg/s",
            "share",
            "CPU us",
            "kept connections: msg/s",
            "share",
            "CPU us",
        ];
        print_table(&head, &by_source.collect::<Vec<_>>());
        println!();
        let own = all.iter().flat_map(|figures| {
            let workloads = figures
                .workloads
                .iter()
                .filter(|measured| matches!(measured.workload, SmtpWorkload::Own(..)));
            workloads.map(|measured| {
                vec![
                    figures.server.name().to_owned(),
                    measured.workload.name(),
                    measured.rate.summary(0),
                    share(measured),
                    measured.cpu.summary(0),
                    measured.p50.summary(2),
                    measured.p99.summary(2),
                    measured.max.summary(1),
                ]
            })
        });
        let head = [
            "by our own generator",
            "workload",
            "msg/s",
            "share",
            "CPU us",
            "250: p50 ms",
            "p99 ms",
            "max ms",
        ];
        print_table(&head, &own.collect::<Vec<_>>());
    }
}

impl ServerFigures {
    /// Our own generator measures tempmail and what it is compared with; the others only take
    /// part with `smtp-source`.
    fn new(server: Server) -> Self {
        let own_too = matches!(server, Server::SmtpSink | Server::Tempmail(_));
        let workloads = SmtpWorkload::ALL
            .into_iter()
            .filter(|workload| own_too || matches!(workload, SmtpWorkload::Source(_)));
        let workloads = workloads.map(|workload| WorkloadFigures {
            workload,
            rate: Rounds::default(),
            cpu: Rounds::default(),
            p50: Rounds::default(),
            p99: Rounds::default(),
            max: Rounds::default(),
        });
        Self { workloads: workloads.collect(), server }
    }
}

/// One mail as `smtp-source -F` wants it: lines end with LF, no end of data.
fn write_text(file: &Path, size: usize) -> anyhow::Result<()> {
    let mut mail = Vec::new();
    Mails::of_size(size).write(&mut mail, 0, "recipient@inbox.localhost");
    let text = String::from_utf8(mail)?.replace("\r\n", "\n");
    Ok(fs::write(file, text.trim_end_matches(".\n"))?)
}
