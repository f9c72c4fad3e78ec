//! System domains, declared.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::kubernetes::{Cluster, Team, World, condition};
use tempmail_tests::wait::eventually;

/// Declares a system domain under this name.
async fn declare(cluster: &Cluster, name: &str, domain: &str, more: &str) {
    let manifest = format!(
        "{{apiVersion: tempmail.dev/v1alpha1, kind: SystemDomain, metadata: {{name: {name}}}, \
         spec: {{domain: {domain}{more}}}}}"
    );
    cluster.apply(&manifest).await.expect("it is taken");
}

/// The domains as clients see them: in their order, and whether each is the default one.
async fn listed<C>(world: &World<C>) -> Vec<(String, bool)> {
    let body = world.request(Method::GET, "/api/domains").send().await.expect(200);
    let domains = body["domains"].as_array().expect("a list").iter();
    let name = |domain: &Value| domain["domain"].as_str().expect("a name").to_owned();
    domains.map(|domain| (name(domain), domain["default"] == true)).collect()
}

async fn serves<C>(world: &World<C>, domain: &str) -> bool {
    listed(world).await.iter().any(|(name, _)| name == domain)
}

async fn begin_deletion(cluster: &Cluster, object: &str) {
    cluster.kubectl(&["delete", object, "--wait=false"]).await.expect("it is there");
}

async fn is_gone(cluster: &Cluster, object: &str) {
    cluster.kubectl(&["wait", object, "--for=delete", "--timeout=120s"]).await.expect("it goes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_domain_serves_as_its_object_says() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let (first, second) = (team.domain("a"), team.domain("b"));
    let (name, object) = (team.tenant.as_str(), format!("systemdomain/{}", team.tenant));
    declare(world.cluster, name, &first, ", sortOrder: 9001").await;
    let shown = team.wait(&object, "Ready").await;
    assert_eq!(condition(&shown, "Accepted").expect("Accepted")["status"], "True");
    world.app.tempmail(&format!("system-domain add {second} --sort-order 9002")).await.success();
    world.app.deliver(&format!("shared@{first}"), "hello", "").await;
    let order = async || {
        let all = listed(world).await;
        let mut ours = all.iter().map(|(name, _)| name).filter(|name| name.ends_with(&team.domain("")[1..]));
        ours.next().expect("both are listed").clone()
    };
    assert_eq!(order().await, first);
    declare(world.cluster, name, &first, ", sortOrder: 9003, sharedInboxes: false").await;
    let generation = "--for=jsonpath={.status.observedGeneration}=2";
    team.kubectl(&["wait", &object, generation, "--timeout=120s"]).await.expect("it is seen");
    assert_eq!(order().await, second);
    let pool = world.pool();
    let shared: bool = sqlx::query_scalar("SELECT shared_inboxes FROM domain WHERE name = $1")
        .bind(&first)
        .fetch_one(&pool)
        .await
        .expect("the row is there");
    assert!(!shared);
    team.delete(&object).await;
    assert!(!serves(world, &first).await && serves(world, &second).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_leaves_what_kubernetes_manages() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let domain = team.domain("sys");
    declare(world.cluster, &team.tenant, &domain, "").await;
    team.wait(&format!("systemdomain/{}", team.tenant), "Ready").await;
    let expected = format!("{domain} is managed by Kubernetes: change or delete its SystemDomain");
    for command in ["set", "default", "remove"] {
        let more = if command == "set" { " --sort-order 5" } else { "" };
        let refused = world.app.tempmail(&format!("system-domain {command} {domain}{more}")).await;
        assert_eq!(refused.failure(), expected);
    }
    assert!(serves(world, &domain).await);
    let tenant = &team.tenant;
    let expected = format!("the tenant {tenant} is managed by Kubernetes: change or delete its Tenant");
    for command in ["suspend", "resume", "set --mailboxes 1", "delete --yes"] {
        let (command, more) = command
            .split_once(' ')
            .map_or((command, String::new()), |(command, more)| (command, format!(" {more}")));
        let refused = world.app.tempmail(&format!("tenant {command} {tenant}{more}")).await;
        assert_eq!(refused.failure(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_has_one_object() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let domain = team.domain("sys");
    world.app.tempmail(&format!("system-domain add {domain} --no-shared-inboxes")).await.success();
    let (first, second) = (format!("{}-a", team.tenant), format!("{}-b", team.tenant));
    declare(world.cluster, &first, &domain, "").await;
    team.wait(&format!("systemdomain/{first}"), "Ready").await;
    declare(world.cluster, &second, &domain, "").await;
    let shown = team.wait_for_reason(&format!("systemdomain/{second}"), "Accepted", "DomainClaimed").await;
    assert_eq!(condition(&shown, "Ready").expect("Ready")["status"], "False");
    // The one that has no row takes none along.
    team.delete(&format!("systemdomain/{second}")).await;
    assert!(serves(world, &domain).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_meets_a_custom_domain_is_refused_without_naming_it() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let custom = team.domain("theirs");
    team.apply("CustomDomain", "theirs", &format!("domain: {custom}")).await.expect("it is taken");
    team.wait("customdomain/theirs", "Accepted").await;
    let above = format!("{}.example", team.tenant);
    declare(world.cluster, &team.tenant, &above, "").await;
    let object = format!("systemdomain/{}", team.tenant);
    let shown = team.wait_for_reason(&object, "Accepted", "ReservedDomain").await;
    let message = condition(&shown, "Accepted").expect("Accepted")["message"].to_string();
    assert!(!message.contains("theirs") && message.contains("custom domain of a tenant"), "{message}");
    assert!(!serves(world, &above).await);
    team.delete(&object).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_stays_while_mailboxes_use_it_and_goes_by_itself_then() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let (domain, object) = (team.domain("sys"), format!("systemdomain/{}", team.tenant));
    declare(world.cluster, &team.tenant, &domain, "").await;
    team.wait(&object, "Ready").await;
    team.apply("Mailbox", "box", &format!("address: a@{domain}")).await.expect("it is taken");
    team.wait("mailbox/box", "Ready").await;
    begin_deletion(world.cluster, &object).await;
    let shown = team.wait_for_reason(&object, "Ready", "InUse").await;
    let message = condition(&shown, "Ready").expect("Ready")["message"].to_string();
    assert!(message.contains("Mailboxes that use the domain: 1."), "{message}");
    world.app.deliver(&format!("a@{domain}"), "hello", "").await;
    team.delete("mailbox/box").await;
    is_gone(world.cluster, &object).await;
    assert!(!serves(world, &domain).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_domain_is_the_default_and_the_last_one_stays() {
    let world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let default = async || {
        let all = listed(&world).await;
        all.into_iter().find(|(_, is_default)| *is_default).expect("there is a default").0
    };
    // The only one there is.
    declare(&world.cluster, "seed", "inbox.localhost", "").await;
    team.wait("systemdomain/seed", "Ready").await;
    begin_deletion(&world.cluster, "systemdomain/seed").await;
    team.wait_for_reason("systemdomain/seed", "Ready", "IsOnly").await;
    assert!(serves(&world, "inbox.localhost").await);

    declare(&world.cluster, "first", "first.example", "").await;
    team.wait("systemdomain/first", "Ready").await;
    nudge(&team, "seed").await;
    team.wait_for_reason("systemdomain/seed", "Ready", "IsDefault").await;
    is_older_than_now(&team, "first").await;
    declare(&world.cluster, "second", "second.example", ", default: true").await;
    team.wait("systemdomain/second", "Ready").await;
    assert_eq!(default().await, "second.example");
    nudge(&team, "seed").await;
    is_gone(&world.cluster, "systemdomain/seed").await;
    let refused = world.app.tempmail("system-domain default first.example").await;
    assert_eq!(
        refused.failure(),
        "first.example is managed by Kubernetes: change or delete its SystemDomain"
    );
    world.app.tempmail("system-domain add third.example").await.success();
    let refused = world.app.tempmail("system-domain default third.example").await;
    assert!(
        refused.failure().starts_with("the default system domain second.example is managed by Kubernetes")
    );

    // The oldest that says so is right, also if it says so later.
    declare(&world.cluster, "first", "first.example", ", default: true").await;
    let shown = team.wait_for_reason("systemdomain/second", "Ready", "DefaultTaken").await;
    assert_eq!(condition(&shown, "Accepted").expect("Accepted")["status"], "True");
    assert_eq!(condition(&shown, "Stalled").expect("Stalled")["status"], "True");
    assert_eq!(default().await, "first.example");
    // Its deletion makes way for the other.
    begin_deletion(&world.cluster, "systemdomain/first").await;
    nudge(&team, "second").await;
    team.wait("systemdomain/second", "Ready").await;
    assert_eq!(default().await, "second.example");
    nudge(&team, "first").await;
    is_gone(&world.cluster, "systemdomain/first").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_refused_does_not_keep_the_default_from_a_younger_one() {
    let world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    team.apply("CustomDomain", "theirs", "domain: theirs.example.com").await.expect("it is taken");
    team.wait("customdomain/theirs", "Accepted").await;
    declare(&world.cluster, "older", "example.com", ", default: true").await;
    team.wait_for_reason("systemdomain/older", "Ready", "ReservedDomain").await;
    is_older_than_now(&team, "older").await;
    declare(&world.cluster, "younger", "younger.example", ", default: true").await;
    team.wait("systemdomain/younger", "Ready").await;
    assert!(listed(&world).await.contains(&("younger.example".to_owned(), true)));
    // Once it is accepted, the older one is right.
    team.delete("customdomain/theirs").await;
    nudge(&team, "older").await;
    team.wait("systemdomain/older", "Ready").await;
    team.wait_for_reason("systemdomain/younger", "Ready", "DefaultTaken").await;
    assert!(listed(&world).await.contains(&("example.com".to_owned(), true)));
}

/// Returns in a later second than that in which an object was made: of two of one second either may be
/// the older one.
async fn is_older_than_now(team: &Team<'_>, name: &str) {
    let shown = team.get(&format!("systemdomain/{name}")).await;
    let made: Timestamp = shown["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    eventually("the second is over", async || {
        (SystemClock::default().now().as_second() > made.as_second()).then_some(())
    })
    .await;
}

/// Has the operator look at an object now, unless it is gone already.
async fn nudge(team: &Team<'_>, name: &str) {
    let object = format!("systemdomain/{name}");
    let value = format!("test={}", uuid::Uuid::new_v4());
    let _ = team.kubectl(&["annotate", &object, &value, "--overwrite"]).await;
}
