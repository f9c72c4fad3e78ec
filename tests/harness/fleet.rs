//! Several processes of the real program over one Postgres, and one Redis where the test has
//! one: what an operator's cluster runs, with time as it is.

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
use crate::load::LoadGenerator;
use crate::mailbox::{self, Mailbox, PASSWORD};
use crate::postgres::Database;
use crate::rows::{
    SYSTEM_DOMAIN, Tenant, end_verification, insert_custom_domain, insert_system_domain, insert_tenant,
    insert_token,
};
use crate::smtp::{Reply, message, send_mail};
use crate::tls;

/// What a test may set before the processes start.
#[derive(Debug)]
pub struct FleetBuilder {
    config: Config,
    counts: [(Role, usize); 3],
    variables: Vec<Variable>,
    database: Option<Database>,
    through_port: Option<u16>,
}

/// An environment variable of one process, or of all.
#[derive(Debug)]
struct Variable {
    of: Option<(Role, usize)>,
    name: String,
    value: String,
}

impl FleetBuilder {
    /// How many processes answer HTTP.
    #[must_use]
    pub fn apis(self, count: usize) -> Self {
        self.count(Role::Api, count)
    }

    /// How many processes take mail.
    #[must_use]
    pub fn ingests(self, count: usize) -> Self {
        self.count(Role::Ingest, count)
    }

    /// How many processes work in the background.
    #[must_use]
    pub fn workers(self, count: usize) -> Self {
        self.count(Role::Worker, count)
    }

    /// Changes settings of all; the addresses to listen on and the Postgres are set later.
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

    /// Sets an environment variable of all; an empty one leaves a setting at its default.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push(Variable { of: None, name: name.to_owned(), value: value.to_owned() });
        self
    }

    /// Sets an environment variable of one.
    #[must_use]
    pub fn env_for(mut self, role: Role, index: usize, name: &str, value: &str) -> Self {
        let of = Some((role, index));
        self.variables.push(Variable { of, name: name.to_owned(), value: value.to_owned() });
        self
    }

    /// Lets all of them use this Redis.
    #[must_use]
    pub fn redis(self, url: &str) -> Self {
        self.env("TEMPMAIL_REDIS__URL", url)
    }

    /// Runs on a database that the test prepared, such as that of an
    /// [`DedicatedPostgres`](crate::postgres::DedicatedPostgres).
    #[must_use]
    pub fn database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Lets the processes reach Postgres through a proxy at this port of loopback only.
    #[must_use]
    pub fn postgres_through(mut self, port: u16) -> Self {
        self.through_port = Some(port);
        self
    }

    /// Starts all of them and returns when each is ready.
    ///
    /// # Panics
    /// One of them ends or hangs instead.
    pub async fn start(self) -> Fleet {
        let database = match self.database {
            Some(database) => database,
            None => Database::create().await,
        };
        let url = match self.through_port {
            Some(port) => database.url_through(port),
            None => database.url(),
        };
        let (pool, clock) = (database.pool(), SystemClock::default());
        insert_system_domain(&pool, &clock, SYSTEM_DOMAIN, true).await;
        let tenant = insert_tenant(&pool, &clock, "harbour").await;
        let http_client = http::client();
        let places = self.counts.iter().flat_map(|&(role, count)| (0..count).map(move |index| (role, index)));
        let processes: Vec<RoleProcess> = places
            .map(|(role, index)| {
                let mut environment = environment::of(&self.config, role);
                environment.push(("TEMPMAIL_POSTGRES__URL".to_owned(), url.clone()));
                let extra = self.variables.iter().filter(|it| it.of.is_none_or(|of| of == (role, index)));
                environment.extend(extra.map(|it| (it.name.clone(), it.value.clone())));
                RoleProcess::start(role, environment, http_client.clone())
            })
            .collect();
        for pod in &processes {
            pod.wait_until_started().await;
        }
        Fleet { processes, http_client, tenant, clock, pool, database }
    }

    fn count(mut self, role: Role, count: usize) -> Self {
        for (of, counted) in &mut self.counts {
            if *of == role {
                *counted = count;
            }
        }
        self
    }
}

/// The processes. They are killed when it is dropped.
#[derive(Debug)]
pub struct Fleet {
    // Dropped in this order: the processes, then the database under them.
    processes: Vec<RoleProcess>,
    http_client: reqwest::Client,
    /// The tenant of the test.
    pub tenant: Tenant,
    clock: SystemClock,
    /// The database, to look into and to prepare.
    pub pool: PgPool,
    database: Database,
}

impl Fleet {
    /// Two processes that answer HTTP, two that take mail and one that works, with the settings
    /// that tests have: limits by client and request rates out of the way.
    pub fn builder() -> FleetBuilder {
        tls::install_provider();
        FleetBuilder {
            config: test_config(),
            counts: [(Role::Api, 2), (Role::Ingest, 2), (Role::Worker, 1)],
            variables: Vec::new(),
            database: None,
            through_port: None,
        }
    }

    /// A process that answers HTTP, counted from 0.
    pub fn api(&self, index: usize) -> &RoleProcess {
        self.pod(Role::Api, index)
    }

    /// A process that takes mail.
    pub fn ingest(&self, index: usize) -> &RoleProcess {
        self.pod(Role::Ingest, index)
    }

    /// A process that works in the background.
    pub fn worker(&self, index: usize) -> &RoleProcess {
        self.pod(Role::Worker, index)
    }

    /// All processes.
    pub fn processes(&self) -> &[RoleProcess] {
        &self.processes
    }

    /// The HTTP listener of a process.
    pub fn http(&self, index: usize) -> SocketAddr {
        self.api(index).listen()
    }

    /// The SMTP listener of a process.
    pub fn smtp(&self, index: usize) -> SocketAddr {
        self.ingest(index).listen()
    }

    /// The database of the test.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// A request to a path of a process.
    pub fn request(&self, index: usize, method: Method, path: &str) -> Request {
        Request::new(&self.http_client, method, &format!("http://{}{path}", self.http(index)))
    }

    /// A follower that begins at a process.
    pub fn follow(&self, index: usize, credential: &str, feed: Feed) -> Follower {
        Follower::start(self.http(index), credential, feed)
    }

    /// A second tenant with tokens of its own.
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

    /// Ends what a custom domain's verification gave: its records are lost.
    ///
    /// # Panics
    /// There is no such domain.
    pub async fn end_verification(&self, domain: Uuid) {
        end_verification(&self.pool, domain).await;
    }

    /// A new mailbox, asked of the first process; of a tenant where its Pro token is given.
    ///
    /// # Panics
    /// It is refused.
    pub async fn mailbox(&self, pro: Option<&str>, address: &str) -> Mailbox {
        let request = self.request(0, Method::POST, "/api/accounts");
        Mailbox::from_response(&mailbox::create(request, pro, address, PASSWORD).await)
    }

    /// Sends a mail to a process, which takes it.
    ///
    /// # Panics
    /// It does not.
    pub async fn deliver(&self, index: usize, recipient: &str, subject: &str) -> Reply {
        let message = message("Ada <ada@client.example>", subject, "");
        let reply = send_mail(self.smtp(index), "ada@client.example", recipient, &message).await;
        assert_eq!(reply.code, 250, "{reply:?}");
        reply
    }

    /// Senders to all processes that take mail.
    pub fn load(&self, connections: usize, rate: Option<u32>) -> LoadGenerator {
        let ingests = self.processes.iter().filter(|pod| pod.role() == Role::Ingest);
        LoadGenerator { servers: ingests.map(RoleProcess::listen).collect(), connections, rate }
    }

    /// Ids of all messages to an address, in the order of the stream.
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

    fn pod(&self, role: Role, index: usize) -> &RoleProcess {
        let mut of_role = self.processes.iter().filter(|pod| pod.role() == role);
        of_role.nth(index).unwrap_or_else(|| panic!("there is no {role:?} {index}"))
    }
}
