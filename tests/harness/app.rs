//! All roles in the test process, over a database of the test, with a clock that the test moves.

mod domain;
mod mail;
mod mailbox;
mod settings;
mod time;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;
use tempmail::roles::{RoleContext, Roles};
use tempmail_api_server::SignInLink;
use tempmail_bus::LocalBus;
use tempmail_model::clock::{Clock, TestClock};
use tempmail_model::key::MasterKey;
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::{Compat, Config, DnsMode};
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_worker::Worker;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

pub use self::domain::Domain;
pub use self::settings::random_key;
pub(crate) use self::settings::{allow_receivers, test_config};
use crate::contract::ValidatedServer;
use crate::dns::TestDns;
use crate::fleet::Role;
use crate::http::{Request, Response};
pub use crate::mailbox::Mailbox;
use crate::port::free_port;
use crate::postgres::Database;
pub use crate::rows::{SYSTEM_DOMAIN, Tenant};
use crate::rows::{
    end_verification, insert_custom_domain, insert_system_domain, insert_tenant, insert_token,
};
use crate::wait::{eventually, within_deadline};
use crate::{http, log, tls};

/// Configures an [`App`] before its roles start.
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

    /// Uses the authoritative name servers of this DNS to verify custom domains.
    #[must_use]
    pub fn dns(self, dns: &TestDns) -> Self {
        self.config(|config| config.dns = dns.settings(DnsMode::Authoritative))
    }

    /// Lets webhooks reach [`Receiver`](crate::Receiver)s.
    #[must_use]
    pub fn receivers(self) -> Self {
        self.config(allow_receivers)
    }

    /// Serves at a base URL of its own: a browser has an origin, which is compared with it.
    #[must_use]
    pub fn browsable(self) -> Self {
        let address = free_port();
        self.config(|config| {
            config.http.listen = address;
            config.http.base_url = format!("http://{address}");
        })
    }

    /// Lets the roles reach Postgres only through a proxy at this port of loopback.
    #[must_use]
    pub fn postgres_through(mut self, port: u16) -> Self {
        self.through_port = Some(port);
        self
    }

    /// Serves all drop-in surfaces, each at a free port.
    #[must_use]
    pub fn drop_ins(self) -> Self {
        self.config(|config| {
            let listen = Some(([127, 0, 0, 1], 0).into());
            let Compat { mailpit, mailhog, mailosaur } = &mut config.compat;
            for surface in [mailpit, mailhog, mailosaur] {
                surface.listen = listen;
            }
        })
    }

    /// Uses a database that the test prepared.
    #[must_use]
    pub fn database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Number of ingest servers.
    #[must_use]
    pub fn ingests(mut self, ingests: usize) -> Self {
        self.ingests = ingests;
        self
    }

    /// Also runs the operator of the cluster that `client` reaches.
    #[must_use]
    pub fn operator(mut self, client: kube::Client) -> Self {
        self.cluster = Some(client);
        self
    }

    /// Starts the roles.
    ///
    /// # Panics
    /// A role does not start.
    pub async fn start(self) -> App {
        let database = match self.database {
            Some(database) => database,
            None => Database::create().await,
        };
        let pool = database.pool();
        let clock = TestClock::default();
        insert_system_domain(&pool, &clock, SYSTEM_DOMAIN, true).await;
        let tenant = insert_tenant(&pool, &clock, "harbour").await;
        let link = SignInLink::generate(&tenant.pro).expect("the operating system gives randomness");
        let sign_in_code = link.code().to_owned();
        let running =
            RunningRoles::start(self.config, &database, self.through_port, &clock, self.ingests, link).await;
        let http_client = http::client();
        let mut app =
            App { running, http_client, tenant, sign_in_code, clock, pool, database, operator: None };
        if let Some(client) = self.cluster {
            app.start_operator(client);
        }
        app
    }
}

/// The running roles of an [`App`].
#[derive(Debug)]
struct RunningRoles {
    smtp: Vec<SocketAddr>,
    http: SocketAddr,
    drop_ins: BTreeMap<DropInSurface, SocketAddr>,
    /// The settings, as the test made them.
    config: Arc<Config>,
    api_store: Store,
    /// The stores of roles that a test starts later.
    worker_store: Store,
    operator_store: Store,
    secrets: Vec<MasterKey>,
    shutdown: Shutdown,
    _validated: ValidatedServer,
    _task: AbortOnDropHandle<anyhow::Result<()>>,
}

impl RunningRoles {
    async fn start(
        config: Config,
        database: &Database,
        through_port: Option<u16>,
        clock: &TestClock,
        ingests: usize,
        link: SignInLink,
    ) -> Self {
        // Each with the login of its role, as processes of their own have it.
        let connect = |role: Role| {
            let url = database.role_url_through(role, through_port);
            Store::connect(&url, config.postgres.pool, "tempmail tests").expect("our own URL is one")
        };
        let [api_store, worker_store, operator_store] =
            [Role::Api, Role::Worker, Role::Operator].map(connect);
        let keys = Keys::from_config(&config).expect("the keys of the harness are valid");
        let secrets = keys.secrets.clone();
        api_store.record_free_class(config.retention.free_hours).await.expect("Postgres answers");
        // Domains are only verified in the worker passes that a test runs.
        let mut config_of_roles = config.clone();
        config_of_roles.worker.verify_domains = false;
        let context = context(config_of_roles, clock);
        let (readiness, shutdown) = (context.readiness.clone(), Shutdown::new());
        let mut roles = Roles::new(context);
        for _ in 0..ingests {
            // A store of its own, like a process of its own would have.
            roles = roles.with_ingest(connect(Role::Ingest)).await.expect("ingest starts");
        }
        let roles = roles.with_api(api_store.clone(), keys).await.expect("api-server starts");
        let roles = roles.with_sign_in_link(link);
        let roles =
            roles.with_worker(worker_store.clone(), &secrets).expect("the webhook settings are valid");
        let (smtp, http) = (roles.smtp_addresses(), roles.http_address().expect("there is an API server"));
        let drop_ins = DropInSurface::ALL
            .into_iter()
            .filter_map(|surface| roles.drop_in_address(surface).map(|address| (surface, address)));
        let drop_ins = drop_ins.collect();
        let task = AbortOnDropHandle::new(tokio::spawn(roles.run(shutdown.clone())));
        eventually("the roles are ready", || async { readiness.report().is_empty().then_some(()) }).await;
        let (config, _validated) = (Arc::new(config), ValidatedServer::new(http));
        Self {
            smtp,
            http,
            drop_ins,
            config,
            api_store,
            worker_store,
            operator_store,
            secrets,
            shutdown,
            _validated,
            _task: task,
        }
    }
}

impl Drop for RunningRoles {
    fn drop(&mut self) {
        self.shutdown.stop.cancel();
    }
}

/// Roles with these settings in this process, over the clock of the test.
fn context(config: Config, clock: &TestClock) -> RoleContext {
    RoleContext {
        config: Arc::new(config),
        bus: Arc::new(LocalBus::new()),
        clock: Arc::new(clock.clone()),
        readiness: Readiness::default(),
    }
}

/// Running roles, with their database and clients.
#[derive(Debug)]
pub struct App {
    // Dropped in this order: the roles, then the database under them.
    running: RunningRoles,
    http_client: reqwest::Client,
    /// The tenant of the test.
    pub tenant: Tenant,
    /// The code of a link that signs in as the tenant, once.
    pub sign_in_code: String,
    /// Business time of all roles.
    pub clock: TestClock,
    /// A pool of the database for its owner, to prepare and inspect it.
    pub pool: PgPool,
    database: Database,
    operator: Option<RunningOperator>,
}

/// An operator, which is aborted on drop.
#[derive(Debug)]
struct RunningOperator {
    drain: CancellationToken,
    task: AbortOnDropHandle<anyhow::Result<()>>,
}

impl App {
    /// Starts with the default settings of tests, without limits by client or request rate.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Starts a configuration with the default settings of tests.
    pub fn builder() -> AppBuilder {
        log::capture();
        tls::install_provider();
        AppBuilder { config: test_config(), through_port: None, database: None, ingests: 1, cluster: None }
    }

    /// Starts an operator of the cluster that `client` reaches. An operator that already runs is
    /// aborted first.
    pub fn start_operator(&mut self, client: kube::Client) {
        self.start_operator_with(client, |_config| {});
    }

    /// Starts an operator with changed settings, as [`Self::start_operator`] does.
    pub fn start_operator_with(&mut self, client: kube::Client, change: impl FnOnce(&mut Config)) {
        self.operator = None;
        let RunningRoles { config, operator_store, secrets, shutdown, .. } = &self.running;
        let mut config = Config::clone(config);
        change(&mut config);
        // When the operator ends, the other roles keep running.
        let drain = shutdown.drain.child_token();
        let shutdown = Shutdown { drain: drain.clone(), stop: shutdown.stop.child_token() };
        let roles = Roles::new(context(config, &self.clock)).with_operator(
            operator_store.clone(),
            secrets.clone(),
            client,
        );
        let task = AbortOnDropHandle::new(tokio::spawn(roles.run(shutdown)));
        self.operator = Some(RunningOperator { drain, task });
    }

    /// Stops the operator, if there is one. It has finished its reconciliations when this returns: an aborted one could
    /// still see what a test changes next.
    pub async fn stop_operator(&mut self) {
        let Some(RunningOperator { drain, task }) = self.operator.take() else { return };
        drain.cancel();
        // It may have failed by what a test did to its API server.
        let _ended = within_deadline("the operator stops", task).await;
    }

    /// The settings of the roles, keys included.
    pub fn config(&self) -> &Config {
        &self.running.config
    }

    /// The (first) SMTP listener.
    pub fn smtp(&self) -> SocketAddr {
        self.running.smtp[0]
    }

    /// The SMTP listeners, one for each ingest.
    pub fn smtp_all(&self) -> &[SocketAddr] {
        &self.running.smtp
    }

    /// The HTTP listener.
    pub fn http(&self) -> SocketAddr {
        self.running.http
    }

    /// The listener of a drop-in surface.
    ///
    /// # Panics
    /// It is off.
    pub fn drop_in(&self, surface: DropInSurface) -> SocketAddr {
        self.running.drop_ins[&surface]
    }

    /// A request to a path of a drop-in surface.
    pub fn drop_in_request(&self, surface: DropInSurface, method: Method, path: &str) -> Request {
        Request::new(&self.http_client, method, &format!("http://{}{path}", self.drop_in(surface)))
    }

    /// A token of a tenant for drop-in surfaces.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn surface_token(&self, tenant: &Tenant, surfaces: &[DropInSurface]) -> String {
        let names: Vec<_> = surfaces.iter().map(|surface| surface.as_str()).collect();
        let request = self.request(Method::POST, "/v1/tokens").live(&tenant.live);
        let created = request.json(&json!({ "name": "drop-in", "surfaces": names })).send().await.expect(201);
        created["token"].as_str().expect("a token is a text").to_owned()
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.http)
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

    /// Another tenant with its own tokens.
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
    /// The name is in use.
    pub async fn custom_domain(&self, tenant: &Tenant, name: &str) -> Uuid {
        insert_custom_domain(&self.pool, &self.clock, tenant.id, name).await
    }

    /// Makes a verified custom domain fail, as if its records were removed.
    ///
    /// # Panics
    /// There is no such domain.
    pub async fn end_verification(&self, domain: Uuid) {
        end_verification(&self.pool, domain).await;
    }

    /// Advances business time.
    pub fn advance_hours(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }

    /// Runs all worker jobs once at the current business time, and waits until all deletions are carried
    /// out.
    ///
    /// # Panics
    /// A job fails.
    pub async fn worker_pass(&self) {
        let RunningRoles { config, worker_store, .. } = &self.running;
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        Worker::new(Arc::clone(config), worker_store.clone(), clock)
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
