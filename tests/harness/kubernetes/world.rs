//! Tempmail in a cluster: the roles and an operator, a DNS, and the API server that all of it is
//! declared to.

use std::sync::LazyLock;

use reqwest::Method;
use serde_json::Value;
use sqlx::PgPool;
use tempmail_model::token::TokenKind;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use super::{Cluster, Team};
use crate::app::AppBuilder;
use crate::http::{self, Request};
use crate::rows::{Tenant, insert_tenant, insert_token};
use crate::{App, TestDns};

/// Time between two checks of a pending domain, seconds.
const INTERVAL_SECONDS: u32 = 1;

/// Tempmail with an operator, in the test process, over a cluster.
#[derive(Debug)]
pub struct World<C> {
    // Dropped in this order: the roles, then what they use.
    /// The roles, and the operator.
    pub app: App,
    /// The name servers that the operator asks.
    pub dns: TestDns,
    /// The cluster.
    pub cluster: C,
}

/// That of all tests of this process.
pub type SharedWorld = World<&'static Cluster>;

impl World<&'static Cluster> {
    /// That of all tests of this process, over the [shared cluster](Cluster::shared). What is not in a
    /// namespace, domains and addresses included, wants names of the test's own; its clock is not to be
    /// moved.
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
        static SHARED: OnceCell<SharedWorld> = OnceCell::const_new();
        let start = async || {
            let cluster = Cluster::shared().await;
            let starting = tokio::task::spawn_blocking(move || RUNTIME.block_on(Self::over(cluster)));
            starting.await.expect("the world starts")
        };
        SHARED.get_or_init(start).await
    }

    async fn over(cluster: &'static Cluster) -> Self {
        let dns = TestDns::start().await;
        let app = roles(&dns).operator(cluster.client()).start().await;
        Self { app, dns, cluster }
    }
}

impl World<Cluster> {
    /// One of a test's own, whose clock may be moved and whose operator may be ended.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start() -> Self {
        let (cluster, dns) = (Cluster::start().await, TestDns::start().await);
        let app = roles(&dns).operator(cluster.client()).start().await;
        Self { app, dns, cluster }
    }

    /// The same without an operator: the test starts them, as processes perhaps.
    ///
    /// # Panics
    /// It does not start.
    pub async fn without_operator() -> Self {
        let (cluster, dns) = (Cluster::start().await, TestDns::start().await);
        let app = roles(&dns).start().await;
        Self { app, dns, cluster }
    }

    /// Ends the operator in the middle of what it does, and starts another.
    ///
    /// # Panics
    /// As [`Cluster::client`].
    pub fn restart_operator(&mut self) {
        self.app.start_operator(self.cluster.client());
    }
}

impl<C> World<C> {
    /// A request to a path, over a connection of its own: those of the shared world outlive no test.
    pub fn request(&self, method: Method, path: &str) -> Request {
        Request::new(&http::client(), method, &format!("http://{}{path}", self.app.http()))
    }

    /// A new token of a tenant, by the tenant's id.
    ///
    /// # Panics
    /// There is no such tenant.
    pub async fn token(&self, tenant: &str, kind: TokenKind) -> String {
        let tenant = tenant.parse().expect("an id is a UUID");
        insert_token(&self.pool(), &self.app.clock, tenant, kind).await
    }

    /// A tenant that no object stands for.
    ///
    /// # Panics
    /// Its name is taken.
    pub async fn unmanaged_tenant(&self, name: &str) -> Tenant {
        insert_tenant(&self.pool(), &self.app.clock, name).await
    }

    /// Sets the records that a CustomDomain asks for, and waits until they are found.
    ///
    /// # Panics
    /// They never are.
    pub async fn verify(&self, team: &Team<'_>, object: &str) {
        let waits = "{.status.verification.records}";
        let wait = ["wait", object, &format!("--for=jsonpath={waits}"), "--timeout=120s"];
        team.kubectl(&wait).await.expect("the records are told");
        let shown = team.get(object).await;
        let records = &shown["status"]["verification"]["records"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (domain, txt, mx_host) =
            (text(&shown["spec"]["domain"]), text(&records[0]["value"]), text(&records[1]["value"]));
        self.dns.domain(&domain, 1).await;
        self.dns.set_txt(&format!("_tempmail.{domain}"), &[&txt]).await;
        self.dns.set_mx(&domain, &[(10, &mx_host)]).await;
        team.wait(object, "Verified").await;
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
    })
}
