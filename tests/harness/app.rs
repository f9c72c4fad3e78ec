//! The whole of tempmail in the test process: ingest, api-server and worker over a database of
//! the test's own, with a clock that the test moves.

mod domain;
mod mail;
mod settings;

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::Value;
use sqlx::PgPool;
use tempmail_api_server::ApiServer;
use tempmail_bus::{LocalBus, SharedBus};
use tempmail_mail_ingest::Ingest;
use tempmail_model::clock::{Clock, TestClock};
use tempmail_model::key::MasterKey;
use tempmail_model::token::TokenKind;
use tempmail_operator::Operator;
use tempmail_runtime::config::{Config, DnsMode};
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_worker::Worker;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

pub use self::domain::Domain;
pub use self::settings::fresh_key;
pub(crate) use self::settings::{reach_receivers, test_config};
use crate::contract::ValidatedServer;
use crate::dns::DnsWorld;
use crate::http::{Request, Response};
pub use crate::mailbox::Mailbox;
use crate::mailbox::{self, PASSWORD};
use crate::postgres::Database;
pub use crate::rows::{SYSTEM_DOMAIN, Tenant};
use crate::rows::{
    end_verification, insert_custom_domain, insert_system_domain, insert_tenant, insert_token,
};
use crate::wait::eventually;
use crate::{http, log, tls};

/// What a test may set before the roles start.
#[expect(missing_debug_implementations, reason = "a client of Kubernetes has none")]
pub struct AppBuilder {
    config: Config,
    through_port: Option<u16>,
    database: Option<Database>,
    ingests: usize,
    cluster: Option<kube::Client>,
}

impl AppBuilder {
    /// Changes settings.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Lets the roles ask this DNS about custom domains: the domains' own name servers.
    #[must_use]
    pub fn dns(self, world: &DnsWorld) -> Self {
        self.config(|config| config.dns = world.settings(DnsMode::Authoritative))
    }

    /// Lets webhooks reach [`Receiver`](crate::Receiver)s.
    #[must_use]
    pub fn receivers(self) -> Self {
        self.config(reach_receivers)
    }

    /// Lets the roles reach Postgres through a proxy at this port of loopback only.
    #[must_use]
    pub fn postgres_through(mut self, port: u16) -> Self {
        self.through_port = Some(port);
        self
    }

    /// Runs on a database that the test prepared.
    #[must_use]
    pub fn database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// How many ingest servers run over the one database.
    #[must_use]
    pub fn ingests(mut self, ingests: usize) -> Self {
        self.ingests = ingests;
        self
    }

    /// Runs an operator, too, of the cluster that `client` reaches.
    #[must_use]
    pub fn operator(mut self, client: kube::Client) -> Self {
        self.cluster = Some(client);
        self
    }

    /// Starts the roles.
    ///
    /// # Panics
    /// One of them does not start.
    pub async fn start(self) -> App {
        let database = match self.database {
            Some(database) => database,
            None => Database::create().await,
        };
        let url = match self.through_port {
            Some(port) => database.url_through(port),
            None => database.url(),
        };
        let pool = database.pool();
        let clock = TestClock::default();
        insert_system_domain(&pool, &clock, SYSTEM_DOMAIN, true).await;
        let tenant = insert_tenant(&pool, &clock, "harbour").await;
        let running = Running::start(self.config, &url, &clock, self.ingests).await;
        let http_client = http::client();
        let mut app = App { running, http_client, tenant, clock, pool, database, operator: None };
        if let Some(client) = self.cluster {
            app.start_operator(client);
        }
        app
    }
}

/// The roles of one start.
#[derive(Debug)]
struct Running {
    smtp: Vec<SocketAddr>,
    http: SocketAddr,
    _validated: ValidatedServer,
    worker: WorkerParts,
    shutdown: Shutdown,
    tasks: JoinSet<anyhow::Result<()>>,
}

/// What a worker is made of, to make one a pass.
#[derive(Debug)]
struct WorkerParts {
    config: Arc<Config>,
    store: Store,
    secrets: Vec<MasterKey>,
}

impl Running {
    async fn start(config: Config, url: &str, clock: &TestClock, ingests: usize) -> Self {
        let store = Store::connect(url, config.postgres.pool, "tempmail tests").expect("our own URL is one");
        let keys = Keys::from_config(&config).expect("the harness makes good keys");
        let secrets = keys.secrets.clone();
        store.record_free_class(config.retention.free_hours).await.expect("the class can be recorded");
        let config = Arc::new(config);
        let bus: SharedBus = Arc::new(LocalBus::new());
        let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
        let business_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let mut tasks = JoinSet::new();
        let mut smtp = Vec::new();
        for _ in 0..ingests {
            // A store of its own, as a process of its own would have.
            let store =
                Store::connect(url, config.postgres.pool, "tempmail ingest").expect("our own URL is one");
            let ingest = Ingest::bind(
                Arc::clone(&config),
                store,
                bus.clone(),
                Arc::clone(&business_clock),
                readiness.clone(),
            )
            .await
            .expect("ingest starts");
            smtp.push(ingest.local_addr());
            tasks.spawn(ingest.run(shutdown.clone()));
        }
        let api = ApiServer::bind(
            Arc::clone(&config),
            store.clone(),
            bus.clone(),
            Arc::clone(&business_clock),
            keys,
            readiness.clone(),
        )
        .await
        .expect("api-server starts");
        let http = api.local_addr();
        tasks.spawn(api.run(shutdown.clone()));
        // Domains are looked at in the passes that a test asks for, and not beside them.
        let mut config_of_loops = Config::clone(&config);
        config_of_loops.worker.verify_domains = false;
        let worker = Worker::new(Arc::new(config_of_loops), store.clone(), business_clock)
            .with_webhooks(bus, &secrets)
            .expect("the settings of webhooks are good");
        tasks.spawn({
            let shutdown = shutdown.clone();
            async move { worker.run(shutdown).await }
        });
        eventually("the roles are ready", || async { readiness.report().is_empty().then_some(()) }).await;
        let _validated = ValidatedServer::new(http);
        Self { smtp, http, _validated, worker: WorkerParts { config, store, secrets }, shutdown, tasks }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.stop.cancel();
        self.tasks.abort_all();
    }
}

/// Tempmail, running.
#[derive(Debug)]
pub struct App {
    // Dropped in this order: the roles, then the database under them.
    running: Running,
    http_client: reqwest::Client,
    /// The tenant of the test.
    pub tenant: Tenant,
    /// Business time of all roles.
    pub clock: TestClock,
    /// The database, to look into and to prepare.
    pub pool: PgPool,
    database: Database,
    operator: Option<AbortOnDropHandle<anyhow::Result<()>>>,
}

impl App {
    /// With the settings that tests have: limits by client and request rates out of the way.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// To change settings first.
    pub fn builder() -> AppBuilder {
        log::capture();
        tls::install_provider();
        AppBuilder { config: test_config(), through_port: None, database: None, ingests: 1, cluster: None }
    }

    /// Starts an operator of the cluster that `client` reaches; one that runs already ends first, in
    /// the middle of what it does.
    pub fn start_operator(&mut self, client: kube::Client) {
        self.stop_operator();
        let parts = &self.running.worker;
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let operator = Operator::new(
            Arc::clone(&parts.config),
            parts.store.clone(),
            clock,
            parts.secrets.clone(),
            client,
        );
        let running = tokio::spawn(operator.run(self.running.shutdown.clone()));
        self.operator = Some(AbortOnDropHandle::new(running));
    }

    /// Ends the operator in the middle of what it does.
    pub fn stop_operator(&mut self) {
        self.operator = None;
    }

    /// The settings of the roles, keys included.
    pub fn config(&self) -> &Config {
        &self.running.worker.config
    }

    /// The (first) SMTP listener.
    pub fn smtp(&self) -> SocketAddr {
        self.running.smtp[0]
    }

    /// All SMTP listeners.
    pub fn smtp_all(&self) -> &[SocketAddr] {
        &self.running.smtp
    }

    /// The HTTP listener.
    pub fn http(&self) -> SocketAddr {
        self.running.http
    }

    /// The database of the test.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// A request to a path.
    pub fn request(&self, method: Method, path: &str) -> Request {
        Request::new(&self.http_client, method, &format!("http://{}{path}", self.running.http))
    }

    /// A `GET` with the tenant's live token.
    pub async fn get(&self, path: &str) -> Response {
        self.get_as(&self.tenant.live, path).await
    }

    /// A `GET` with a live token.
    pub async fn get_as(&self, live: &str, path: &str) -> Response {
        self.request(Method::GET, path).live(live).send().await
    }

    /// A `DELETE` with the tenant's live token.
    pub async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).live(&self.tenant.live).send().await
    }

    /// A second tenant with tokens of its own.
    pub async fn another_tenant(&self, name: &str) -> Tenant {
        insert_tenant(&self.pool, &self.clock, name).await
    }

    /// A further token of a tenant.
    pub async fn token(&self, tenant: &Tenant, kind: TokenKind) -> String {
        insert_token(&self.pool, &self.clock, tenant.id, kind).await
    }

    /// A token of the built-in tenant `platform`.
    pub async fn platform_token(&self) -> String {
        insert_token(&self.pool, &self.clock, tempmail_model::id::PLATFORM_TENANT, TokenKind::Live).await
    }

    /// A further system domain.
    pub async fn system_domain(&self, name: &str, shared_inboxes: bool) -> Uuid {
        insert_system_domain(&self.pool, &self.clock, name, shared_inboxes).await
    }

    /// A verified custom domain of a tenant.
    ///
    /// # Panics
    /// The name is taken.
    pub async fn custom_domain(&self, tenant: &Tenant, name: &str) -> Uuid {
        insert_custom_domain(&self.pool, &self.clock, tenant.id, name).await
    }

    /// Ends what a custom domain's verification gave: its records are lost.
    ///
    /// # Panics
    /// There is no such domain.
    pub async fn end_verification(&self, domain: Uuid) {
        end_verification(&self.pool, domain).await;
    }

    /// Tries to create a mailbox, with a Pro token or without.
    pub async fn create_mailbox(&self, pro: Option<&str>, address: &str, password: &str) -> Response {
        mailbox::create(self.request(Method::POST, "/api/accounts"), pro, address, password).await
    }

    /// A new mailbox.
    ///
    /// # Panics
    /// It is refused.
    pub async fn mailbox(&self, pro: Option<&str>, address: &str) -> Mailbox {
        Mailbox::from_response(&self.create_mailbox(pro, address, PASSWORD).await)
    }

    /// A `GET` with a mailbox JWT.
    pub async fn get_mailbox(&self, mailbox: &Mailbox, path: &str) -> Response {
        self.request(Method::GET, path).bearer(&mailbox.jwt).send().await
    }

    /// The first page of a mailbox, newest first.
    pub async fn messages(&self, mailbox: &Mailbox) -> Vec<Value> {
        let answer = self.get_mailbox(mailbox, "/api/messages").await.expect(200);
        answer["messages"].as_array().expect("messages is a list").clone()
    }

    /// Moves business time on.
    pub fn advance_hours(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }

    /// One pass of all the worker's loops at the time of the clock, deletions that the running
    /// worker has in hand included.
    ///
    /// # Panics
    /// A loop fails.
    pub async fn worker_pass(&self) {
        let parts = &self.running.worker;
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        Worker::new(Arc::clone(&parts.config), parts.store.clone(), clock)
            .run_once()
            .await
            .expect("the worker's pass succeeds");
        eventually("every deletion is carried out", || async {
            (self.count("SELECT count(*) FROM purge").await == 0).then_some(())
        })
        .await;
    }

    /// One number from the database.
    ///
    /// # Panics
    /// The statement fails.
    pub async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.pool).await.expect("the statement counts")
    }
}
