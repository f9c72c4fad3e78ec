//! SystemDomain: service, deletion, and the default domain.

use jiff::Timestamp;
use serde_json::Value;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::kubernetes::{Cluster, Installation, Team, assert_conditions, condition_message};
use tempmail_tests::wait::eventually;

/// Declares a system domain under this name, with more fields of its spec.
async fn declare(team: &Team, name: &str, domain: &str, more: &str) {
    team.apply_object("SystemDomain", name, &format!("domain: {domain}, {more}")).await;
}

/// The domains over HTTP, in their order, and whether each is the default one.
async fn listed<C>(installation: &Installation<C>) -> Vec<(String, bool)> {
    let body = installation.request(reqwest::Method::GET, "/api/domains").send().await.expect(200);
    let domains = body["domains"].as_array().expect("a list").iter();
    let name = |domain: &Value| domain["domain"].as_str().expect("a name").to_owned();
    domains.map(|domain| (name(domain), domain["default"] == true)).collect()
}

async fn is_served<C>(installation: &Installation<C>, domain: &str) -> bool {
    listed(installation).await.iter().any(|(name, _)| name == domain)
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_a_domain_as_its_spec_says() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let (first, second) = (team.domain("a"), team.domain("b"));
    let (name, object) = (team.tenant.as_str(), format!("systemdomain/{}", team.tenant));
    declare(&team, name, &first, "sortOrder: 9001").await;
    let shown = team.wait_for_condition(&object, "Ready").await;
    assert_conditions(&shown, &[("Accepted", "True")]);
    installation.tempmail(&format!("system-domain add {second} --sort-order 9002")).await;
    installation.app.deliver(&format!("shared@{first}"), "hello", "").await;
    let first_of_ours = async || {
        let all = listed(installation).await;
        let mut ours = all.iter().map(|(name, _)| name).filter(|name| name.ends_with(&team.domain("")[1..]));
        ours.next().expect("both are listed").clone()
    };
    assert_eq!(first_of_ours().await, first);
    declare(&team, name, &first, "sortOrder: 9003, sharedInboxes: false").await;
    team.wait_for_status(&object, "observedGeneration", 2).await;
    assert_eq!(first_of_ours().await, second);
    assert!(!installation.has_shared_inboxes(&first).await);
    team.delete(&object).await;
    assert!(!is_served(installation, &first).await && is_served(installation, &second).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_does_not_change_declared_objects() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("sys");
    declare(&team, &team.tenant, &domain, "").await;
    team.wait_for_condition(&format!("systemdomain/{}", team.tenant), "Ready").await;
    let expected = format!("{domain} is managed by Kubernetes: change or delete its SystemDomain");
    for command in ["set", "default", "remove"] {
        let more = if command == "set" { " --sort-order 5" } else { "" };
        let refused = installation.app.tempmail(&format!("system-domain {command} {domain}{more}")).await;
        assert_eq!(refused.failure(), expected);
    }
    assert!(is_served(installation, &domain).await);
    let tenant = &team.tenant;
    let expected = format!("the tenant {tenant} is managed by Kubernetes: change or delete its Tenant");
    for command in ["suspend", "resume", "set --mailboxes 1", "delete --yes"] {
        let (command, more) = command
            .split_once(' ')
            .map_or((command, String::new()), |(command, more)| (command, format!(" {more}")));
        let refused = installation.app.tempmail(&format!("tenant {command} {tenant}{more}")).await;
        assert_eq!(refused.failure(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adopts_a_domain_of_the_command_line_and_says_so() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let (domain, object) = (team.domain("sys"), format!("systemdomain/{}", team.tenant));
    installation.tempmail(&format!("system-domain add {domain}")).await;
    declare(&team, &team.tenant, &domain, "").await;
    team.wait_for_condition(&object, "Ready").await;
    let event = team.wait_for_event_about(&object, "Adopted").await;
    assert!(event.starts_with(&format!("Adopted the system domain {domain}, ")), "{event}");
    let refused = installation.app.tempmail(&format!("system-domain remove {domain}")).await;
    assert!(refused.failure().contains("is managed by Kubernetes"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_second_object_for_a_domain() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("sys");
    installation.tempmail(&format!("system-domain add {domain} --no-shared-inboxes")).await;
    let (first, second) = (format!("{}-a", team.tenant), format!("{}-b", team.tenant));
    declare(&team, &first, &domain, "").await;
    team.wait_for_condition(&format!("systemdomain/{first}"), "Ready").await;
    declare(&team, &second, &domain, "").await;
    let shown = team.wait_for_reason(&format!("systemdomain/{second}"), "Accepted", "DomainClaimed").await;
    assert_conditions(&shown, &[("Ready", "False")]);
    let message = condition_message(&shown, "Ready");
    assert!(message.starts_with(&format!("The object {first} manages the domain {domain} ")), "{message}");
    // Its deletion does not touch the domain.
    team.delete(&format!("systemdomain/{second}")).await;
    assert!(is_served(installation, &domain).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_parent_of_a_custom_domain_without_naming_it() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.apply("CustomDomain", "theirs", &format!("domain: {}", team.domain("theirs"))).await;
    team.wait_for_condition("customdomain/theirs", "Accepted").await;
    let parent = format!("{}.example", team.tenant);
    declare(&team, &team.tenant, &parent, "").await;
    let object = format!("systemdomain/{}", team.tenant);
    let shown = team.wait_for_reason(&object, "Accepted", "ReservedDomain").await;
    let message = condition_message(&shown, "Accepted");
    assert!(!message.contains("theirs") && message.contains("custom domain"), "{message}");
    assert!(!is_served(installation, &parent).await);
    team.delete(&object).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_domain_when_no_mailbox_uses_it() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let (domain, object) = (team.domain("sys"), format!("systemdomain/{}", team.tenant));
    declare(&team, &team.tenant, &domain, "").await;
    team.wait_for_condition(&object, "Ready").await;
    team.apply_ready("Mailbox", "box", &format!("address: a@{domain}")).await;
    team.start_deletion(&object).await;
    let shown = team.wait_for_reason(&object, "Ready", "InUse").await;
    let message = condition_message(&shown, "Ready");
    assert!(message.contains(&format!("1 mailbox uses the domain {domain}.")), "{message}");
    installation.app.deliver(&format!("a@{domain}"), "hello", "").await;
    team.delete("mailbox/box").await;
    team.wait_until_deleted(&object).await;
    assert!(!is_served(installation, &domain).await);
}

/// An installation whose default domain the test changes.
struct DefaultDomain {
    installation: Installation<Cluster>,
    team: Team,
}

impl DefaultDomain {
    async fn start() -> Self {
        let installation = Installation::exclusive().await;
        let team = Team::new(&installation.cluster).await;
        Self { installation, team }
    }

    async fn declare(&self, name: &str, domain: &str, more: &str) {
        declare(&self.team, name, domain, more).await;
    }

    async fn wait_until_ready(&self, name: &str) {
        self.team.wait_for_condition(&format!("systemdomain/{name}"), "Ready").await;
    }

    async fn wait_for_reason(&self, name: &str, reason: &str) -> Value {
        self.team.wait_for_reason(&format!("systemdomain/{name}"), "Ready", reason).await
    }

    async fn start_deletion(&self, name: &str) {
        self.team.start_deletion(&format!("systemdomain/{name}")).await;
    }

    /// Makes the operator reconcile an object, which may be gone already.
    async fn trigger_reconcile(&self, name: &str) {
        let patch = serde_json::json!({"metadata": {"annotations": {"test": uuid::Uuid::new_v4()}}});
        let _ = self.team.try_patch(&format!("systemdomain/{name}"), &patch).await;
    }

    /// Waits until an object is gone that the operator could not delete before.
    async fn wait_until_deleted(&self, name: &str) {
        self.trigger_reconcile(name).await;
        self.team.wait_until_deleted(&format!("systemdomain/{name}")).await;
    }

    async fn default(&self) -> String {
        let all = listed(&self.installation).await;
        all.into_iter().find(|(_, is_default)| *is_default).expect("there is a default").0
    }

    /// Returns in a later second than that in which an object was created: of two objects of one second,
    /// either may be the older one.
    async fn wait_until_older(&self, name: &str) {
        let shown = self.team.get(&format!("systemdomain/{name}")).await;
        let created: Timestamp = shown["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
        eventually("the second is over", async || {
            (SystemClock::default().now().as_second() > created.as_second()).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_only_and_the_default_domain_until_another_is_the_default() {
    let fixture = DefaultDomain::start().await;
    fixture.declare("seed", "inbox.localhost", "").await;
    fixture.wait_until_ready("seed").await;
    fixture.start_deletion("seed").await;
    fixture.wait_for_reason("seed", "IsOnly").await;
    assert!(is_served(&fixture.installation, "inbox.localhost").await);

    fixture.declare("first", "first.example", "").await;
    fixture.wait_until_ready("first").await;
    fixture.trigger_reconcile("seed").await;
    fixture.wait_for_reason("seed", "IsDefault").await;
    fixture.declare("second", "second.example", "default: true").await;
    fixture.wait_until_ready("second").await;
    assert_eq!(fixture.default().await, "second.example");
    fixture.wait_until_deleted("seed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_does_not_change_a_declared_default_domain() {
    let fixture = DefaultDomain::start().await;
    fixture.declare("ours", "ours.example", "default: true").await;
    fixture.wait_until_ready("ours").await;
    let refused = fixture.installation.app.tempmail("system-domain default ours.example").await;
    assert_eq!(refused.failure(), "ours.example is managed by Kubernetes: change or delete its SystemDomain");
    fixture.installation.tempmail("system-domain add third.example").await;
    let refused = fixture.installation.app.tempmail("system-domain default third.example").await;
    assert!(refused.failure().starts_with("the default system domain ours.example is managed by Kubernetes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_object_that_wants_the_default_domain_has_it() {
    let fixture = DefaultDomain::start().await;
    fixture.declare("first", "first.example", "").await;
    fixture.wait_until_ready("first").await;
    fixture.wait_until_older("first").await;
    fixture.declare("second", "second.example", "default: true").await;
    fixture.wait_until_ready("second").await;
    assert_eq!(fixture.default().await, "second.example");

    fixture.declare("first", "first.example", "default: true").await;
    fixture.wait_until_ready("first").await;
    let shown = fixture.wait_for_reason("second", "DefaultTaken").await;
    assert_conditions(&shown, &[("Accepted", "True"), ("Stalled", "True")]);
    let message = condition_message(&shown, "Ready");
    assert!(message.starts_with("The SystemDomain first is older "), "{message}");
    assert_eq!(fixture.default().await, "first.example");

    fixture.start_deletion("first").await;
    fixture.trigger_reconcile("second").await;
    fixture.wait_until_ready("second").await;
    assert_eq!(fixture.default().await, "second.example");
    fixture.wait_until_deleted("first").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_object_does_not_keep_a_younger_one_from_being_the_default() {
    let fixture = DefaultDomain::start().await;
    fixture.team.apply("CustomDomain", "theirs", "domain: theirs.example.com").await;
    fixture.team.wait_for_condition("customdomain/theirs", "Accepted").await;
    fixture.declare("older", "example.com", "default: true").await;
    fixture.wait_for_reason("older", "ReservedDomain").await;
    fixture.wait_until_older("older").await;
    fixture.declare("younger", "younger.example", "default: true").await;
    fixture.wait_until_ready("younger").await;
    assert_eq!(fixture.default().await, "younger.example");
    // When it is accepted, the older one is the default.
    fixture.team.delete("customdomain/theirs").await;
    fixture.trigger_reconcile("older").await;
    fixture.wait_until_ready("older").await;
    fixture.wait_for_reason("younger", "DefaultTaken").await;
    assert_eq!(fixture.default().await, "example.com");
}
