//! Two clusters over one database: neither takes anything from the other, until an administrator releases one.

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::CommandOutput;
use tempmail_tests::fleet::Role;
use tempmail_tests::kubernetes::{
    Cluster, Installation, OperatorProcess, TEAM_OBJECTS, Team, condition_message, condition_reason,
};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::eventually;

/// Objects of a team in a cluster that is about to vanish, and what they have.
struct Transfer {
    installation: Installation<Cluster>,
    /// The id of the cluster.
    gone: String,
    /// The cluster that is built anew.
    rebuilt: Cluster,
    /// The team in the cluster that vanishes.
    before: Team,
    had: Held,
}

/// What the objects of a team have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    tenant: Value,
    system_domain: Value,
    domain: Value,
    mailbox: Value,
    webhook: Value,
    token: String,
    password: String,
    webhook_secret: String,
}

impl Held {
    /// Waits until each object of a team is ready, and reads what it has.
    async fn once_ready(team: &Team) -> Self {
        for object in objects(team) {
            team.wait_for_condition(&object, "Ready").await;
        }
        Self {
            tenant: id(team, &team.tenant_object(), "tenantId").await,
            system_domain: id(team, &system_domain(team), "domainId").await,
            domain: id(team, "customdomain/mail", "domainId").await,
            mailbox: id(team, "mailbox/signup", "mailboxId").await,
            webhook: id(team, "webhook/hook", "webhookId").await,
            token: team.secret_value("ci-token", "token").await,
            password: team.secret_value("signup-mailbox", "password").await,
            webhook_secret: team.secret_value("hook-webhook", "secret").await,
        }
    }
}

async fn id(team: &Team, object: &str, field: &str) -> Value {
    team.get(object).await["status"][field].clone()
}

fn system_domain(team: &Team) -> String {
    format!("systemdomain/{}", team.tenant)
}

/// The objects of [`declare`].
fn objects(team: &Team) -> impl Iterator<Item = String> {
    let in_no_namespace = [team.tenant_object(), system_domain(team)];
    in_no_namespace.into_iter().chain(TEAM_OBJECTS.map(str::to_owned))
}

fn address(team: &Team) -> String {
    format!("signup@{}", team.domain("mail"))
}

/// Declares an object of each kind, with the same names in each cluster.
async fn declare(team: &Team) {
    team.apply_tenant("").await;
    team.apply_object("SystemDomain", &team.tenant, &format!("domain: {}", team.domain("sys"))).await;
    team.declare_objects(&team.domain("mail")).await;
}

/// Runs `tempmail cluster` with the login of the schema's owner.
async fn cluster_command(installation: &Installation<Cluster>, arguments: &[&str]) -> CommandOutput {
    let arguments = [&["cluster"][..], arguments].concat();
    let url = installation.app.database().url();
    CommandOutput::run(&arguments, &[("TEMPMAIL_POSTGRES__URL", &url)]).await
}

/// Subjects of the mail at the address of a team, as a live token shows them.
async fn subjects(installation: &Installation<Cluster>, team: &Team, live: &str) -> Vec<Value> {
    let path = format!("/v1/inbox/{}", address(team));
    let inbox = installation.request(Method::GET, &path).live(live).send().await.expect(200);
    let emails = inbox["emails"].as_array().expect("a list");
    emails.iter().map(|email| email["subject"].clone()).collect()
}

/// Starts an operator of a cluster over the installation's database; does not wait for it.
fn spawn_operator(installation: &Installation<Cluster>, cluster: &Cluster) -> OperatorProcess {
    let app = &installation.app;
    let database = app.database().role_url(Role::Operator);
    OperatorProcess::spawn(app.config(), &database, cluster.kubeconfig())
}

/// Waits until an operator says that its cluster was released.
async fn wait_until_reported_released(operator: &OperatorProcess, cluster: &str) {
    eventually("the operator says that its cluster was released", || async {
        let report = operator.readyz().await?;
        report.contains(&format!("tempmail cluster admit {cluster}")).then_some(())
    })
    .await;
    assert!(!operator.is_ready().await);
    operator.wait_for_log("was released").await;
}

impl Transfer {
    /// Declares the objects of a team, and has a mail delivered to it.
    async fn start() -> Self {
        let (mut installation, rebuilt) = Installation::with_another_cluster().await;
        installation.start_operator();
        let before = Team::without_tenant(&installation.cluster).await;
        declare(&before).await;
        installation.verify_domain(&before, "customdomain/mail").await;
        let had = Held::once_ready(&before).await;
        installation.app.deliver(&address(&before), "before", "").await;
        assert_eq!(subjects(&installation, &before, &had.token).await, ["before"]);
        let gone = installation.cluster.id().await;
        Self { installation, gone, rebuilt, before, had }
    }

    /// Ends the operator of the first cluster, starts that of the second, and declares the same objects there.
    async fn rebuild(&mut self) -> Team {
        self.installation.app.stop_operator().await;
        let after = self.before.in_another(&self.rebuilt).await;
        self.installation.app.start_operator(self.rebuilt.client());
        declare(&after).await;
        after
    }

    /// Releases the cluster that is gone, whose operator was not seen for some time.
    async fn release(&self) {
        self.installation.age_heartbeat(&self.gone).await;
        let released = cluster_command(&self.installation, &["release", &self.gone]).await;
        assert!(released.success().starts_with(&format!("released {}: ", self.gone)), "{released:?}");
    }

    /// Asserts that what the first cluster's objects had serves as before.
    async fn assert_nothing_is_taken(&self) {
        assert_eq!(subjects(&self.installation, &self.before, &self.had.token).await, ["before"]);
        self.installation.sign_in(&address(&self.before), &self.had.password).await.expect(200);
        let (tokens, webhooks) = self.installation.active_tokens_and_webhooks(&self.before).await;
        assert_eq!((tokens, webhooks), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuilt_cluster_takes_over_domains_mailboxes_and_mail_once_the_former_one_is_released() {
    let mut transfer = Transfer::start().await;
    let after = transfer.rebuild().await;
    for object in [after.tenant_object(), system_domain(&after)] {
        let shown = after.wait_for_reason(&object, "Ready", "HeldByAnotherCluster").await;
        let message = condition_message(&shown, "Ready");
        assert!(message.contains(&format!("tempmail cluster release {}", transfer.gone)), "{message}");
    }
    for object in TEAM_OBJECTS {
        after.wait_for_reason(object, "Ready", "TenantNotReady").await;
    }
    transfer.assert_nothing_is_taken().await;

    transfer.release().await;
    // Its row did not change.
    after.trigger_reconcile(&system_domain(&after)).await;
    let now_has = Held::once_ready(&after).await;
    for (object, adopted) in [
        (after.tenant_object(), &now_has.tenant),
        ("customdomain/mail".to_owned(), &now_has.domain),
        ("mailbox/signup".to_owned(), &now_has.mailbox),
        ("webhook/hook".to_owned(), &now_has.webhook),
    ] {
        let event = after.wait_for_event_about(&object, "Adopted").await;
        let id = adopted.as_str().expect("an id");
        assert!(event.contains(id) && event.contains(&transfer.gone), "{object}: {event}");
    }
    let event = after.wait_for_event_about(&system_domain(&after), "Adopted").await;
    assert!(event.contains(&after.domain("sys")), "{event}");
    let Held { token, password, webhook_secret, .. } = now_has.clone();
    assert_eq!(Held { token, password, webhook_secret, ..transfer.had.clone() }, now_has);
    for (former, latter) in [
        (&transfer.had.token, &now_has.token),
        (&transfer.had.password, &now_has.password),
        (&transfer.had.webhook_secret, &now_has.webhook_secret),
    ] {
        assert_ne!(former, latter, "each credential is new");
    }
    let installation = &transfer.installation;
    assert_eq!(subjects(installation, &after, &now_has.token).await, ["before"]);
    installation.sign_in(&address(&after), &now_has.password).await.expect(200);
    assert_eq!(installation.sign_in(&address(&after), &transfer.had.password).await.status, 401);
    installation.wait_until_token_rejected(&transfer.had.token).await;
    installation.wait_for_mail_reply(&address(&after), 250).await;
    assert_eq!(installation.recorded_objects(after.namespace.name()).await, 4, "no object is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_no_cluster_whose_operator_was_seen_and_none_for_the_login_of_a_role() {
    let transfer = Transfer::start().await;
    let (installation, gone) = (&transfer.installation, transfer.gone.as_str());
    let refused = cluster_command(installation, &["release", gone]).await;
    assert!(refused.failure().contains("less than 10 minutes ago"), "{refused:?}");
    installation.age_heartbeat(gone).await;
    let refused = installation.app.tempmail(&format!("cluster release {gone}")).await;
    assert!(refused.failure().contains("the login of `migrate`"), "{refused:?}");
    let unknown = cluster_command(installation, &["release", "00000000-0000-4000-8000-000000000000"]).await;
    assert!(unknown.failure().contains("tempmail cluster list"), "{unknown:?}");
    let refused = cluster_command(installation, &["admit", gone]).await;
    assert!(refused.failure().contains("is not released"), "{refused:?}");
    transfer.assert_nothing_is_taken().await;

    let listed = cluster_command(installation, &["list", "--json"]).await.json();
    let clusters = listed["clusters"].as_array().expect("a list");
    assert_eq!(clusters.len(), 1, "{listed:#}");
    assert_eq!(clusters[0]["cluster"], gone);
    assert_eq!(clusters[0]["objects"], 6);
    assert!(clusters[0]["released_at"].is_null() && clusters[0]["heartbeat_at"].is_string(), "{listed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_another_name_or_address_adopts_nothing_of_a_released_cluster() {
    let mut transfer = Transfer::start().await;
    transfer.installation.app.stop_operator().await;
    transfer.release().await;
    let after = transfer.before.in_another(&transfer.rebuilt).await;
    transfer.installation.app.start_operator(transfer.rebuilt.client());
    after.declare_tenant("").await;

    let domain = format!("domain: {}", after.domain("mail"));
    after.apply("CustomDomain", "renamed", &domain).await;
    let shown = after.wait_for_reason("customdomain/renamed", "Ready", "HeldByAnotherCluster").await;
    let message = condition_message(&shown, "Ready");
    assert!(message.contains("/mail of the released cluster"), "{message}");
    let elsewhere = format!("address: {}@{SYSTEM_DOMAIN}", after.tenant);
    after.apply_ready("Mailbox", "signup", &elsewhere).await;
    assert_ne!(id(&after, "mailbox/signup", "mailboxId").await, transfer.had.mailbox);

    after.apply("CustomDomain", "mail", &domain).await;
    after.wait_for_condition("customdomain/mail", "Verified").await;
    assert_eq!(id(&after, "customdomain/mail", "domainId").await, transfer.had.domain);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_of_a_released_cluster_changes_nothing_until_the_cluster_is_admitted() {
    let mut transfer = Transfer::start().await;
    let after = transfer.rebuild().await;
    transfer.release().await;
    after.trigger_reconcile(&system_domain(&after)).await;
    let now_has = Held::once_ready(&after).await;

    let former = spawn_operator(&transfer.installation, &transfer.installation.cluster);
    wait_until_reported_released(&former, &transfer.gone).await;
    for object in objects(&transfer.before) {
        transfer.before.trigger_reconcile(&object).await;
    }
    let admitted = cluster_command(&transfer.installation, &["admit", &transfer.gone]).await;
    assert!(admitted.success().starts_with("admitted "), "{admitted:?}");
    former.wait_until_leader().await;
    let tenant = transfer.before.tenant_object();
    transfer.before.wait_for_reason(&tenant, "Ready", "HeldByAnotherCluster").await;
    let object = system_domain(&transfer.before);
    transfer.before.wait_for_reason(&object, "Ready", "HeldByAnotherCluster").await;
    assert_eq!(Held::once_ready(&after).await, now_has, "the former cluster took nothing back");
    assert_eq!(subjects(&transfer.installation, &after, &now_has.token).await, ["before"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_was_released_by_mistake_goes_on_with_new_credentials_once_it_is_admitted() {
    let mut transfer = Transfer::start().await;
    transfer.installation.app.stop_operator().await;
    let operator = spawn_operator(&transfer.installation, &transfer.installation.cluster);
    operator.wait_until_ready().await;
    operator.wait_until_leader().await;
    let released = cluster_command(&transfer.installation, &["release", "--force", &transfer.gone]).await;
    released.success();
    // What it writes next is fenced.
    for object in objects(&transfer.before) {
        transfer.before.trigger_reconcile(&object).await;
    }
    assert!(!operator.wait_for_exit().await.success(), "it keeps running");
    eventually("the token is rejected", || async {
        (transfer.installation.live_token_status(&transfer.had.token).await != 200).then_some(())
    })
    .await;
    operator.restart().await;
    wait_until_reported_released(&operator, &transfer.gone).await;

    let admitted = cluster_command(&transfer.installation, &["admit", &transfer.gone, "--json"]).await;
    assert_eq!(admitted.json()["released"], false);
    operator.wait_until_leader().await;
    let (team, had) = (&transfer.before, &transfer.had);
    let token = team.wait_for_another_value("ci-token", "token", &had.token).await;
    let password = team.wait_for_another_value("signup-mailbox", "password", &had.password).await;
    team.wait_for_another_value("hook-webhook", "secret", &had.webhook_secret).await;
    let now_has = Held::once_ready(team).await;
    assert_eq!((&now_has.tenant, &now_has.domain), (&had.tenant, &had.domain));
    assert_eq!((&now_has.mailbox, &now_has.token), (&had.mailbox, &token));
    assert_eq!(subjects(&transfer.installation, team, &token).await, ["before"]);
    transfer.installation.sign_in(&address(team), &password).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_of_two_clusters_work_over_one_database_at_once() {
    let (installation, other) = Installation::with_another_cluster().await;
    let operators =
        [spawn_operator(&installation, &installation.cluster), spawn_operator(&installation, &other)];
    for operator in &operators {
        operator.wait_until_ready().await;
        operator.wait_until_leader().await;
    }
    let team = Team::new(&installation.cluster).await;
    let theirs = Team::new(&other).await;
    // Whichever comes second is refused, and takes nothing.
    let same = team.in_another(&other).await;
    same.apply_tenant("").await;
    let tenant = same.tenant_object();
    let shown = same.wait_for_reason(&tenant, "Ready", "HeldByAnotherCluster").await;
    assert_eq!(condition_reason(&shown, "Accepted"), "HeldByAnotherCluster");
    team.declare_tenant("limits: {customDomains: 7}").await;
    theirs.declare_tenant("limits: {customDomains: 8}").await;
    assert_eq!(installation.domain_limit(&team.tenant).await, 7);
    assert_eq!(installation.domain_limit(&theirs.tenant).await, 8);
    for operator in &operators {
        assert!(operator.is_leader().await, "neither ends the other: {}", operator.log());
    }
}
