//! Tempmail in a cluster: the roles and an operator, a DNS, and the API server.

use std::sync::LazyLock;

use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;
use tempmail_model::token::TokenKind;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use super::cluster::Cluster;
use super::status::verification_records;
use super::team::Team;
use crate::app::AppBuilder;
use crate::http::{self, Request, Response};
use crate::rows::{Tenant, insert_tenant, insert_token};
use crate::smtp::{message, send_mail};
use crate::wait::eventually;
use crate::{App, TestDns, mailbox};

/// Time between two checks of a pending domain, seconds.
const INTERVAL_SECONDS: u32 = 1;

/// Tempmail with an operator, in the test process, and the cluster of the operator.
#[derive(Debug)]
pub struct Installation<C> {
    // Dropped in this order: the roles, then what they use.
    /// The roles, and the operator.
    pub app: App,
    /// The name servers that the operator queries.
    pub dns: TestDns,
    /// The cluster.
    pub cluster: C,
}

/// The installation that all tests of this process share.
pub type SharedInstallation = Installation<&'static Cluster>;

impl Installation<&'static Cluster> {
    /// The installation of all tests of this process, in the [shared cluster](Cluster::shared). Domains,
    /// addresses and objects that are not in a namespace need names of the test's own, and its clock must
    /// not be moved.
    ///
    /// # Panics
    /// It does not start.
    pub async fn shared() -> &'static Self {
        // It outlives the runtime of any test.
        static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime can be made")
        });
        static SHARED: OnceCell<SharedInstallation> = OnceCell::const_new();
        let start = async || {
            let cluster = Cluster::shared().await;
            let starting = tokio::task::spawn_blocking(move || RUNTIME.block_on(Self::start(cluster)));
            starting.await.expect("the installation starts")
        };
        SHARED.get_or_init(start).await
    }

    async fn start(cluster: &'static Cluster) -> Self {
        let dns = TestDns::start().await;
        let app = roles(&dns).operator(cluster.client()).start().await;
        Self { app, dns, cluster }
    }
}

impl Installation<Cluster> {
    /// One in an [exclusive cluster](Cluster::exclusive): the test may move its clock and stop its
    /// operator.
    ///
    /// # Panics
    /// It does not start.
    pub async fn exclusive() -> Self {
        let mut installation = Self::without_operator().await;
        installation.start_operator();
        installation
    }

    /// The same without an operator: the test starts one, or several.
    ///
    /// # Panics
    /// It does not start.
    pub async fn without_operator() -> Self {
        Self::start_in(Cluster::exclusive().await).await
    }

    /// One without an operator, and another cluster, whose operators may use the same database.
    ///
    /// # Panics
    /// It does not start.
    pub async fn with_another_cluster() -> (Self, Cluster) {
        let [cluster, other] = Cluster::exclusive_pair().await;
        (Self::start_in(cluster).await, other)
    }

    async fn start_in(cluster: Cluster) -> Self {
        let dns = TestDns::start().await;
        let app = roles(&dns).start().await;
        Self { app, dns, cluster }
    }

    /// Starts an operator; aborts one that is running.
    ///
    /// # Panics
    /// As [`Cluster::client`].
    pub fn start_operator(&mut self) {
        self.app.start_operator(self.cluster.client());
    }
}

impl<C> Installation<C> {
    /// A request to a path, over a connection of its own: those of the shared installation must not
    /// depend on the runtime of a test.
    pub fn request(&self, method: Method, path: &str) -> Request {
        let url = format!("http://{}{path}", self.app.http());
        Request::new(http::client_without_pool(), method, &url)
    }

    /// Runs a command of `tempmail` that has to succeed, and returns what it prints.
    ///
    /// # Panics
    /// It fails.
    pub async fn tempmail(&self, command: &str) -> String {
        self.app.tempmail(command).await.success().to_owned()
    }

    /// A new token of a tenant, by the tenant's id.
    ///
    /// # Panics
    /// There is no such tenant.
    pub async fn token(&self, tenant: &str, kind: TokenKind) -> String {
        let tenant = tenant.parse().expect("an id is a UUID");
        insert_token(&self.pool(), &self.app.clock, tenant, kind).await
    }

    /// A tenant that no object declares.
    ///
    /// # Panics
    /// Its name is taken.
    pub async fn unmanaged_tenant(&self, name: &str) -> Tenant {
        insert_tenant(&self.pool(), &self.app.clock, name).await
    }

    /// Declares a CustomDomain of this label, and waits until it is verified.
    ///
    /// # Panics
    /// It never is.
    pub async fn verified_domain(&self, team: &Team, name: &str, label: &str) -> String {
        let domain = team.domain(label);
        team.apply("CustomDomain", name, &format!("domain: {domain}")).await;
        self.verify_domain(team, &format!("customdomain/{name}")).await;
        domain
    }

    /// Publishes the DNS records of a CustomDomain, and waits until they are found.
    ///
    /// # Panics
    /// They never are.
    pub async fn verify_domain(&self, team: &Team, object: &str) {
        let has_records = |shown: &serde_json::Value| shown["status"]["verification"]["records"].is_array();
        let shown = team.wait_until(object, "records to publish", has_records).await;
        let (token, mx_host) = verification_records(&shown);
        let domain = shown["spec"]["domain"].as_str().expect("a domain");
        self.dns.domain(domain, 1).await;
        self.dns.set_verified(domain, &token, &mx_host).await;
        team.wait_for_condition(object, "Verified").await;
    }

    /// The database, over connections of the test's own.
    pub fn pool(&self) -> PgPool {
        self.app.database().pool()
    }
}

fn roles(dns: &TestDns) -> AppBuilder {
    App::builder().dns(dns).receivers().config(|config| {
        config.dns.interval_seconds = INTERVAL_SECONDS;
        config.operator.lease_seconds = 2;
        config.operator.secret_check_seconds = 5;
        // Tests try credentials that have ended, all from one address.
        config.limits.refused_per_minute = 1_000_000;
    })
}

impl<C> Installation<C> {
    /// Status of the answer of `/v1` to a live token.
    pub async fn live_token_status(&self, live: &str) -> u16 {
        self.request(Method::GET, "/v1/tokens").live(live).send().await.status
    }

    /// Waits until `/v1` accepts a live token.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_until_token_accepted(&self, live: &str) {
        eventually("the token is accepted", || async {
            (self.live_token_status(live).await == 200).then_some(())
        })
        .await;
    }

    /// Waits until `/v1` rejects a live token.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_until_token_rejected(&self, live: &str) {
        eventually("the token is rejected", || async {
            (self.live_token_status(live).await == 401).then_some(())
        })
        .await;
    }

    /// The answer to a `GET` with a Pro token.
    pub async fn get_as_pro(&self, pro: &str, path: &str) -> Response {
        self.request(Method::GET, path).bearer(pro).send().await
    }

    /// The answer to a sign-in to a mailbox.
    pub async fn sign_in(&self, address: &str, password: &str) -> Response {
        let credentials = json!({"address": address, "password": password});
        self.request(Method::POST, "/api/token").json(&credentials).send().await
    }

    /// Tries to create a mailbox, with a Pro token or without.
    pub async fn create_mailbox(&self, pro: Option<&str>, address: &str, password: &str) -> Response {
        mailbox::create(self.request(Method::POST, "/api/accounts"), pro, address, password).await
    }

    /// Sends a mail to an address, and returns the code of the last reply.
    pub async fn send_mail_to(&self, recipient: &str) -> u16 {
        let message = message("Ada <ada@client.example>", "a mail", "");
        send_mail(self.app.smtp(), "ada@client.example", recipient, &message).await.code
    }

    /// Sends mails to an address until one is answered with this code.
    ///
    /// # Panics
    /// None ever is.
    pub async fn wait_for_mail_reply(&self, recipient: &str, code: u16) {
        eventually(&format!("a mail to {recipient} is answered with {code}"), || async {
            (self.send_mail_to(recipient).await == code).then_some(())
        })
        .await;
    }
}
