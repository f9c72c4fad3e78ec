//! Several processes of the real program over one Postgres, and over a Redis if the test has one, in
//! real time.

pub(crate) mod environment;
mod role_process;

use std::net::SocketAddr;

use reqwest::Method;
use sqlx::PgPool;
use tempmail_model::clock::SystemClock;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Config;
use uuid::Uuid;

pub use self::role_process::{Role, RoleProcess, Termination};
use crate::app::{allow_receivers, test_config};
use crate::follower::{Feed, Follower};
use crate::http::{self, Request};
use crate::key_file::KeyFile;
use crate::load::LoadGenerator;
use crate::mailbox::{self, Mailbox, PASSWORD};
use crate::postgres::Database;
use crate::rows::{
    SYSTEM_DOMAIN, Tenant, end_verification, insert_custom_domain, insert_system_domain, insert_tenant,
    insert_token,
};
use crate::smtp::{Reply, message, send_mail};
use crate::tls;

/// Configures a [`Fleet`] before its processes start.
#[derive(Debug)]
pub struct FleetBuilder {
    config: Config,
    counts: [(Role, usize); 3],
    variables: Vec<Variable>,
    database: Option<Database>,
    through_port: Option<u16>,
    /// Processes that bypass the proxy.
    direct: Vec<(Role, usize)>,
}

/// An environment variable of one process or, with `process: None`, of all.
#[derive(Debug)]
struct Variable {
    process: Option<(Role, usize)>,
    name: String,
    value: String,
}

impl FleetBuilder {
    /// Number of `api` processes.
    #[must_use]
    pub fn apis(self, count: usize) -> Self {
        self.count(Role::Api, count)
    }

    /// Number of `ingest` processes.
    #[must_use]
    pub fn ingests(self, count: usize) -> Self {
        self.count(Role::Ingest, count)
    }

    /// Number of `worker` processes.
    #[must_use]
    pub fn workers(self, count: usize) -> Self {
        self.count(Role::Worker, count)
    }

    /// Changes settings of all processes; listen addresses and the Postgres URL are set later.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Lets webhooks reach [`Receiver`](crate::Receiver)s.
    #[must_use]
    pub fn receivers(self) -> Self {
        self.config(allow_receivers)
    }

    /// Sets an environment variable of all processes; an empty value leaves a setting at its default.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push(Variable { process: None, name: name.to_owned(), value: value.to_owned() });
        self
    }

    /// Sets an environment variable of one process.
    #[must_use]
    pub fn env_for(mut self, role: Role, index: usize, name: &str, value: &str) -> Self {
        let process = Some((role, index));
        self.variables.push(Variable { process, name: name.to_owned(), value: value.to_owned() });
        self
    }

    /// Lets the processes read `jwt.keys` from a file each time that they start.
    #[must_use]
    pub fn jwt_keys(self, file: &KeyFile) -> Self {
        self.env("TEMPMAIL_JWT__KEYS", "").env("TEMPMAIL_JWT__KEYS_FILE", &file.path())
    }

    /// Lets the processes read `secrets.keys` from a file each time that they start.
    #[must_use]
    pub fn secrets_keys(self, file: &KeyFile) -> Self {
        self.env("TEMPMAIL_SECRETS__KEYS", "").env("TEMPMAIL_SECRETS__KEYS_FILE", &file.path())
    }

    /// Connects all processes to this Redis.
    #[must_use]
    pub fn redis(self, url: &str) -> Self {
        self.env("TEMPMAIL_REDIS__URL", url)
    }

    /// Uses a database that the test prepared, such as that of a
    /// [`DedicatedPostgres`](crate::postgres::DedicatedPostgres).
    #[must_use]
    pub fn database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Lets the processes reach Postgres only through a proxy at this port of loopback.
    #[must_use]
    pub fn postgres_through(mut self, port: u16) -> Self {
        self.through_port = Some(port);
        self
    }

    /// Lets one process bypass the proxy of [`Self::postgres_through`].
    #[must_use]
    pub fn direct(mut self, role: Role, index: usize) -> Self {
        self.direct.push((role, index));
        self
    }

    /// Starts all processes and returns when they are ready.
    ///
    /// # Panics
    /// A process exits or hangs.
    pub async fn start(self) -> Fleet {
        let database = match self.database {
            Some(database) => database,
            None => Database::create().await,
        };
        let (pool, clock) = (database.pool(), SystemClock::default());
        insert_system_domain(&pool, &clock, SYSTEM_DOMAIN, true).await;
        let tenant = insert_tenant(&pool, &clock, "harbour").await;
        // A pool may have connections over which nothing was sent yet. A process that has accepted none of them does not
        // close them when it ends, and the one that follows at its address resets them.
        let http_client = http::client_without_pool().clone();
        let roles = self.counts.iter().flat_map(|&(role, count)| (0..count).map(move |index| (role, index)));
        let processes: Vec<RoleProcess> = roles
            .map(|(role, index)| {
                let mut environment = environment::of(&self.config, role);
                let port = self.through_port.filter(|_| !self.direct.contains(&(role, index)));
                let url = database.role_url_through(role, port);
                environment.push(("TEMPMAIL_POSTGRES__URL".to_owned(), url));
                let extra = self
                    .variables
                    .iter()
                    .filter(|it| it.process.is_none_or(|process| process == (role, index)));
                environment.extend(extra.map(|it| (it.name.clone(), it.value.clone())));
                RoleProcess::start(role, environment, http_client.clone())
            })
            .collect();
        for process in &processes {
            process.wait_until_started().await;
        }
        Fleet { processes, http_client, tenant, clock, pool, database }
    }

    fn count(mut self, role: Role, count: usize) -> Self {
        for (counted_role, current) in &mut self.counts {
            if *counted_role == role {
                *current = count;
            }
        }
        self
    }
}

/// Running processes. They are killed on drop.
#[derive(Debug)]
pub struct Fleet {
    // Dropped in this order: the processes, then the database under them.
    processes: Vec<RoleProcess>,
    http_client: reqwest::Client,
    /// The tenant of the test.
    pub tenant: Tenant,
    clock: SystemClock,
    /// A pool of the database, to prepare and inspect it.
    pub pool: PgPool,
    database: Database,
}

impl Fleet {
    /// Two `api`, two `ingest` and one `worker` process, with the default settings of tests: without limits
    /// by client or request rate.
    pub fn builder() -> FleetBuilder {
        tls::install_provider();
        FleetBuilder {
            config: test_config(),
            counts: [(Role::Api, 2), (Role::Ingest, 2), (Role::Worker, 1)],
            variables: Vec::new(),
            database: None,
            through_port: None,
            direct: Vec::new(),
        }
    }

    /// An `api` process, counted from 0.
    pub fn api(&self, index: usize) -> &RoleProcess {
        self.process(Role::Api, index)
    }

    /// An `ingest` process, counted from 0.
    pub fn ingest(&self, index: usize) -> &RoleProcess {
        self.process(Role::Ingest, index)
    }

    /// A `worker` process, counted from 0.
    pub fn worker(&self, index: usize) -> &RoleProcess {
        self.process(Role::Worker, index)
    }

    /// All processes.
    pub fn processes(&self) -> &[RoleProcess] {
        &self.processes
    }

    /// The HTTP listener of an `api` process.
    pub fn http(&self, index: usize) -> SocketAddr {
        self.api(index).listen()
    }

    /// The SMTP listener of an `ingest` process.
    pub fn smtp(&self, index: usize) -> SocketAddr {
        self.ingest(index).listen()
    }

    /// The database of the test.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// A request to a path of an `api` process.
    pub fn request(&self, index: usize, method: Method, path: &str) -> Request {
        Request::new(&self.http_client, method, &format!("http://{}{path}", self.http(index)))
    }

    /// A follower that starts at an `api` process.
    pub fn follow(&self, index: usize, credential: &str, feed: Feed) -> Follower {
        Follower::start(self.http(index), credential, feed)
    }

    /// Another tenant with its own tokens.
    pub async fn another_tenant(&self, name: &str) -> Tenant {
        insert_tenant(&self.pool, &self.clock, name).await
    }

    /// A further token of a tenant.
    pub async fn token(&self, tenant: &Tenant, kind: TokenKind) -> String {
        insert_token(&self.pool, &self.clock, tenant.id, kind).await
    }

    /// A further system domain.
    pub async fn system_domain(&self, name: &str, shared_inboxes: bool) -> Uuid {
        insert_system_domain(&self.pool, &self.clock, name, shared_inboxes).await
    }

    /// A verified custom domain of a tenant.
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

    /// Creates a mailbox at the first `api` process; of a tenant if its Pro token is given.
    ///
    /// # Panics
    /// The request is refused.
    pub async fn mailbox(&self, pro: Option<&str>, address: &str) -> Mailbox {
        let request = self.request(0, Method::POST, "/api/accounts");
        Mailbox::from_response(&mailbox::create(request, pro, address, PASSWORD).await)
    }

    /// Sends a mail to an `ingest` process.
    ///
    /// # Panics
    /// It is not accepted.
    pub async fn deliver(&self, index: usize, recipient: &str, subject: &str) -> Reply {
        let message = message("Ada <ada@client.example>", subject, "");
        let reply = send_mail(self.smtp(index), "ada@client.example", recipient, &message).await;
        assert_eq!(reply.code, 250, "{reply:?}");
        reply
    }

    /// Senders to all `ingest` processes.
    pub fn load(&self, connections: usize, rate: Option<u32>) -> LoadGenerator {
        let ingests = self.processes.iter().filter(|process| process.role() == Role::Ingest);
        LoadGenerator { servers: ingests.map(RoleProcess::listen).collect(), connections, rate }
    }

    /// Ids of all stored messages to an address, in stream order.
    ///
    /// # Panics
    /// Postgres does not answer.
    pub async fn stored_message_ids(&self, address: &str) -> Vec<Uuid> {
        sqlx::query_scalar("SELECT id FROM message WHERE address = $1 ORDER BY seq")
            .bind(address)
            .fetch_all(&self.pool)
            .await
            .expect("Postgres answers")
    }

    fn process(&self, role: Role, index: usize) -> &RoleProcess {
        let mut of_role = self.processes.iter().filter(|process| process.role() == role);
        of_role.nth(index).unwrap_or_else(|| panic!("there is no {role:?} {index}"))
    }
}
