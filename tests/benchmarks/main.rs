//! `tempmail-bench`: the benchmarks. `./tests/bench` installs what they need, builds and
//! starts it; `docs/performance.md` explains what each of them measures.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are this program's output")]

mod environment;
mod growth;
mod http;
mod load;
mod mail;
mod measure;
mod operator;
mod postgres;
mod process;
mod reads;
mod realtime;
mod server;
mod sign_in;
mod smtp;
mod stack;
mod webhooks;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "bench", about = "Benchmarks of tempmail and its peers, on loopback only")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Acceptance of mail over SMTP: tempmail and other servers in turn, on the same work
    Smtp(smtp::Comparison),
    /// The cost of a million stored mails, and of the expiry of half of them
    Growth(growth::Growth),
    /// Hot reads over HTTP at few and many stored mails, beside nginx and a file of that size
    Http(reads::Reads),
    /// Memory of idle subscribers, time from a commit to the subscriber, and a reconnect storm
    Realtime(realtime::Realtime),
    /// Whether response times reveal which mailboxes and messages exist
    SignIn(sign_in::SignIn),
    /// Deliveries a second to webhooks, their latency beside dead receivers, and what idle ones cost
    Webhooks(webhooks::Webhooks),
    /// Many CustomDomains in a real API server: first checks, memory, writes at rest, checks within the interval
    Operator(operator::OperatorArgs),
    /// Only the load generator, against a running server
    Load(load::SmtpLoad),
    /// Postgres alone: one-row transactions and batches, with the settings of `tempmail up`
    Postgres(postgres::PostgresAlone),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match start(arguments.benchmark) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(benchmark: Benchmark) -> anyhow::Result<()> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider is already installed"))?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        tokio::select! {
            outcome = run(benchmark) => outcome,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        }
    })
}

async fn run(benchmark: Benchmark) -> anyhow::Result<()> {
    match benchmark {
        Benchmark::Smtp(comparison) => comparison.run().await,
        Benchmark::Growth(growth) => growth.run().await,
        Benchmark::Http(reads) => reads.run().await,
        Benchmark::Realtime(realtime) => realtime.run().await,
        Benchmark::SignIn(sign_in) => sign_in.run().await,
        Benchmark::Webhooks(webhooks) => webhooks.run().await,
        Benchmark::Operator(operator) => operator.run().await,
        Benchmark::Load(load) => {
            println!("{}", load.run().await?);
            Ok(())
        }
        Benchmark::Postgres(alone) => alone.run().await,
    }
}
