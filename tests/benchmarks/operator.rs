//! `./tests/bench operator`: many CustomDomains in a real API server. How long the operator takes to
//! check all of them for the first time, its memory, its writes at rest, and whether each domain is
//! checked within its interval. The real program runs over a
//! real Postgres; the API server, the proxy that counts and the name server are on the same machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use tempmail_runtime::config::DnsMode;
use tempmail_store::Store;
use tempmail_tests::dns::NameServer;
use tempmail_tests::kubernetes::{ApiProxy, Cluster, Namespace};
use tempmail_tests::port::free_port;
use tempmail_tests::postgres::migrate;
use tempmail_tests::{TestDns, http};
use tokio::process::Command;
use tokio::time::sleep;

use crate::environment::tempmail_program;
use crate::environment::{describe_machine, work_directory};
use crate::measure::print_table;
use crate::process::{ServerProcess, tempmail};
use crate::stack::{BenchPostgres, config};

/// Objects that are created concurrently.
const CREATE_CONCURRENCY: usize = 32;
/// Longest wait for a step.
const TIMEOUT: Duration = Duration::from_secs(1_800);
/// The operator is at rest when it wrote nothing for this long.
const QUIET: Duration = Duration::from_secs(15);
/// Time between two polls.
const POLL: Duration = Duration::from_millis(500);

/// `./tests/bench operator` options.
#[derive(Debug, Args)]
pub struct OperatorArgs {
    /// CustomDomains, all of one tenant and pending
    #[arg(long, default_value_t = 5_000)]
    domains: u32,
    /// Seconds between two checks of a domain
    #[arg(long, default_value_t = 300)]
    interval: u32,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Path of tempmail; default: the one beside this program
    #[arg(long)]
    tempmail: Option<PathBuf>,
}

impl OperatorArgs {
    /// Runs it and prints a table.
    ///
    /// # Errors
    /// Something does not start, or does not come to its end.
    pub async fn run(self) -> anyhow::Result<()> {
        let directory = work_directory(&self.work_dir)?;
        println!("{}", describe_machine(directory.path())?);
        let site = OperatorBench::start(&self, directory.path()).await?;
        let namespace = site.kubernetes.namespace(&[]).await;
        site.declare(self.domains, &namespace).await?;

        let began = Instant::now();
        let operator = site.operator(&self, directory.path())?;
        site.until(&operator, "SELECT count(*) FROM domain WHERE tenant IS NOT NULL", self.domains).await?;
        let declared = began.elapsed();
        site.until(&operator, "SELECT count(*) FROM domain WHERE txt_result IS NOT NULL", self.domains)
            .await?;
        let checked = began.elapsed();
        let settled = site.quiet(&operator).await? - began;
        let after_pass = operator.process.memory()?;

        let (asked, queries) = (site.proxy.request_count(), site.server.queries().len());
        let interval = Duration::from_secs(u64::from(self.interval));
        // A check is due after its interval, and up to a tenth more; a pass begins every five seconds.
        let rest = interval.mul_f64(1.1) + Duration::from_secs(10);
        sleep(rest).await;
        let writes = site.proxy.writes_since(asked).len();
        let checks = self.checks(&site.server, queries);
        let memory = operator.process.memory()?;

        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let mebibytes = |octets: u64| format!("{} MiB", octets >> 20);
        let per_minute = f64::from(u32::try_from(writes)?) * 60.0 / rest.as_secs_f64();
        print_table(
            &["what", "measured"],
            &[
                vec![format!("{} CustomDomains have a row", self.domains), seconds(declared)],
                vec!["their records are checked".to_owned(), seconds(checked)],
                vec!["the last status is written".to_owned(), seconds(settled)],
                vec![
                    "RSS then, and at most".to_owned(),
                    format!("{}, {}", mebibytes(after_pass.now), mebibytes(after_pass.peak)),
                ],
                vec![format!("writes a minute at rest, over {}", seconds(rest)), format!("{per_minute:.1}")],
                vec!["domains not checked meanwhile".to_owned(), checks.missed.to_string()],
                vec![
                    "checks of a domain, fewest and most".to_owned(),
                    format!("{}, {}", checks.fewest, checks.most),
                ],
                vec![
                    "RSS at rest, and at most".to_owned(),
                    format!("{}, {}", mebibytes(memory.now), mebibytes(memory.peak)),
                ],
            ],
        );
        operator.process.stop().await?;
        site.postgres.stop().await;
        Ok(())
    }

    /// How often each domain was checked, after the first `queries` queries.
    fn checks(&self, server: &NameServer, queries: usize) -> CheckCounts {
        let mut checks: BTreeMap<String, u32> = (0..self.domains).map(|number| (domain(number), 0)).collect();
        for asked in server.queries().iter().skip(queries) {
            let name = asked.name.to_ascii_lowercase();
            if let Some(domain) = name.trim_end_matches('.').strip_prefix("_tempmail.") {
                checks.entry(domain.to_owned()).and_modify(|count| *count += 1);
            }
        }
        let missed = checks.values().filter(|count| **count == 0).count();
        let bounds = |of: Option<&u32>| of.copied().unwrap_or_default();
        CheckCounts { missed, fewest: bounds(checks.values().min()), most: bounds(checks.values().max()) }
    }
}

struct CheckCounts {
    missed: usize,
    fewest: u32,
    most: u32,
}

/// What the operator needs: a Kubernetes cluster, Postgres and DNS.
struct OperatorBench {
    kubernetes: Cluster,
    proxy: ApiProxy,
    postgres: BenchPostgres,
    url: String,
    store: Store,
    dns: TestDns,
    server: NameServer,
}

struct OperatorProcess {
    process: ServerProcess,
    admin: SocketAddr,
}

impl OperatorBench {
    async fn start(options: &OperatorArgs, directory: &Path) -> anyhow::Result<Self> {
        let kubernetes = Cluster::exclusive().await;
        let proxy = ApiProxy::start(&kubernetes).await;
        let postgres = BenchPostgres::start(directory).await?;
        let url = postgres.create_database("operator").await?;
        let store = Store::connect(&url, 4, "tempmail bench")?;
        migrate(&store).await;
        let dns = TestDns::start().await;
        let server = dns.server().await;
        for number in 0..options.domains {
            dns.delegate(&domain(number), &[&server]).await;
        }
        Ok(Self { kubernetes, proxy, postgres, url, store, dns, server })
    }

    /// A tenant with this many domains.
    async fn declare(&self, domains: u32, namespace: &Namespace) -> anyhow::Result<()> {
        let client = self.kubernetes.client();
        let tenant = json!({
            "apiVersion": "tempmail.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "bench"},
            "spec": {
                "limits": {"customDomains": domains},
                "allowedNamespaces": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace.name()]},
                ]},
            },
        });
        create(&Api::all_with(client.clone(), &resource("Tenant")), tenant).await?;
        let api = Api::namespaced_with(client, namespace.name(), &resource("CustomDomain"));
        stream::iter(0..domains)
            .map(|number| {
                let object = json!({
                    "apiVersion": "tempmail.dev/v1alpha1", "kind": "CustomDomain",
                    "metadata": {"name": format!("d{number}")},
                    "spec": {"tenantRef": {"name": "bench"}, "domain": domain(number)},
                });
                create(&api, object)
            })
            .buffer_unordered(CREATE_CONCURRENCY)
            .try_collect::<()>()
            .await
    }

    fn operator(&self, options: &OperatorArgs, directory: &Path) -> anyhow::Result<OperatorProcess> {
        let admin = free_port();
        let dns = self.dns.settings(DnsMode::Authoritative);
        let server = dns.servers.first().context("there is a server")?.to_string();
        let program = tempmail_program(options.tempmail.as_deref())?;
        let mut command: Command = tempmail(&program, "operator", &self.url, &config()?);
        command
            .env("KUBECONFIG", self.proxy.kubeconfig())
            .env("TEMPMAIL_ADMIN__LISTEN", admin.to_string())
            .env("TEMPMAIL_DNS__SERVERS", server)
            .env("TEMPMAIL_DNS__PORT", dns.port.to_string())
            .env("TEMPMAIL_DNS__ALLOW_PRIVATE", "true")
            .env("TEMPMAIL_TUNING", json!({"dns": {"interval_seconds": options.interval}}).to_string());
        Ok(OperatorProcess { process: ServerProcess::start("operator", command, directory)?, admin })
    }

    /// Returns when this statement counts all domains.
    async fn until(
        &self,
        operator: &OperatorProcess,
        statement: &'static str,
        domains: u32,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let count: i64 = sqlx::query_scalar(statement).fetch_one(self.store.pool()).await?;
            if count >= i64::from(domains) {
                return Ok(());
            }
            ensure!(began.elapsed() < TIMEOUT, "{count} of {domains}: {}", operator.metrics().await?);
            sleep(POLL).await;
        }
    }

    /// When the last write was, after which nothing was written for [`QUIET`].
    async fn quiet(&self, operator: &OperatorProcess) -> anyhow::Result<Instant> {
        let began = Instant::now();
        let (mut seen, mut last) = (self.proxy.request_count(), Instant::now());
        while last.elapsed() < QUIET {
            ensure!(began.elapsed() < TIMEOUT, "the operator keeps writing: {}", operator.metrics().await?);
            sleep(POLL).await;
            if !self.proxy.writes_since(seen).is_empty() {
                (seen, last) = (self.proxy.request_count(), Instant::now());
            }
        }
        Ok(last)
    }
}

impl OperatorProcess {
    /// Its own metrics.
    async fn metrics(&self) -> anyhow::Result<String> {
        let answer = http::client().get(format!("http://{}/metrics", self.admin)).send().await?;
        let text = answer.text().await?;
        let own =
            text.lines().filter(|line| line.starts_with("tempmail_operator_") && !line.contains("_bucket"));
        Ok(own.collect::<Vec<_>>().join("\n"))
    }
}

fn domain(number: u32) -> String {
    format!("d{number}.bench.example")
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("tempmail.dev", "v1alpha1", kind))
}

async fn create(api: &Api<DynamicObject>, object: serde_json::Value) -> anyhow::Result<()> {
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}
