//! A Tenant that is deleted and applied again, as GitOps tools do it: all that it had belongs to the former tenant, and each
//! object says how to have it again.

use serde_json::Value;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{
    SharedInstallation, TEAM_OBJECTS, Team, assert_conditions, condition_message, unique_name,
};
use tempmail_tests::wait::eventually;

use super::{ADOPT, adopt};

/// A team with an object of each kind, all of them ready, and a mail; its Tenant is deleted then.
struct PrunedTenant {
    installation: &'static SharedInstallation,
    team: Team,
    /// Where the mail is.
    address: String,
    /// Id of the tenant.
    id: String,
}

impl PrunedTenant {
    /// The spec of the Tenant has these further fields.
    async fn start(spec: &str) -> Self {
        let installation = Installation::shared().await;
        let team = Team::with_spec(installation.cluster, spec).await;
        let (address, id) = (format!("signup@{}", team.domain("mail")), team.tenant_id().await);
        team.declare_objects(&team.domain("mail")).await;
        installation.verify_domain(&team, "customdomain/mail").await;
        wait_until_ready(&team).await;
        installation.wait_for_mail_reply(&address, 250).await;
        team.delete(&team.tenant_object()).await;
        Self { installation, team, address, id }
    }

    async fn delete_objects(&self) {
        for object in TEAM_OBJECTS {
            self.team.delete(object).await;
        }
    }

    /// Creates the objects again, in the tenant that the team has now.
    async fn create_objects_again(&self) {
        let Self { installation, team, address, .. } = self;
        // That of the mail, also where the tenant has another name now.
        let (_, domain) = address.split_once('@').expect("an address");
        team.declare_objects(domain).await;
        installation.verify_domain(team, "customdomain/mail").await;
        for object in TEAM_OBJECTS {
            // Garbage collection deletes the Secrets of the former objects.
            team.trigger_reconcile(object).await;
            team.wait_for_condition(object, "Ready").await;
        }
    }

    /// Waits until the mail can be read with the token of the ApiToken.
    async fn wait_until_mail_is_read(&self) {
        let path = format!("/v1/inbox/{}", self.address);
        eventually("the mail is read with the token", || async {
            let token = self.team.secret_value("ci-token", "token").await;
            let answer = self.installation.request(reqwest::Method::GET, &path).live(&token).send().await;
            let is_read = answer.status == 200 && answer.json()["emails"].as_array()?.len() == 1;
            is_read.then_some(())
        })
        .await;
    }
}

async fn wait_until_ready(team: &Team) {
    for object in TEAM_OBJECTS {
        team.wait_for_condition(object, "Ready").await;
    }
}

/// Runs the command that a message quotes.
async fn run_quoted(team: &Team, message: &str) {
    let command = message.split('`').nth(1).expect("the message quotes a command");
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("kubectl"), "{message}");
    team.kubectl(&words.collect::<Vec<_>>()).await.expect("the command is carried out");
}

/// The event of this reason about a Tenant that may be gone.
async fn event_about_tenant(pruned: &PrunedTenant, reason: &str) -> String {
    let objects = pruned.installation.cluster.objects("default");
    eventually(&format!("an event {reason}"), || async {
        let events = objects.list("event").await;
        let is_meant =
            |event: &&Value| event["reason"] == reason && event["regarding"]["name"] == pruned.team.tenant;
        events.iter().find(is_meant)?["note"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_all_kinds_name_the_former_tenant_and_work_again_as_they_say() {
    let pruned = PrunedTenant::start("").await;
    let PrunedTenant { installation, team, id, .. } = &pruned;
    let retained = event_about_tenant(&pruned, "TenantRetained").await;
    assert!(retained.contains(id.as_str()), "{retained}");

    team.declare_tenant("").await;
    let replacement = team.tenant_id().await;
    assert_ne!(&replacement, id);
    let mut messages = Vec::new();
    for object in TEAM_OBJECTS {
        let shown = team.wait_for_reason(object, "Ready", "TenantReplaced").await;
        assert_conditions(&shown, &[("Accepted", "False"), ("Stalled", "True")]);
        let message = condition_message(&shown, "Ready").to_owned();
        assert_eq!(team.wait_for_event_about(object, "TenantReplaced").await, message);
        messages.push(message);
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains(&format!("{ADOPT}={id}")), "{}", messages[0]);
    assert_eq!(installation.tokens_and_webhooks(team).await, (0, 0), "the new tenant has something");

    run_quoted(team, &messages[0]).await;
    wait_until_ready(team).await;
    assert_eq!(&team.tenant_id().await, id);
    pruned.wait_until_mail_is_read().await;
    installation.wait_for_mail_reply(&pruned.address, 250).await;
    let event = team.wait_for_event_about(&team.tenant_object(), "Adopted").await;
    assert!(event.contains(id.as_str()), "{event}");
    let listed = installation.tempmail("tenant list --json").await;
    assert!(listed.contains(id.as_str()) && !listed.contains(&replacement), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_of_a_deleted_tenant_says_how_a_new_one_has_its_data() {
    let pruned = PrunedTenant::start("").await;
    let team = &pruned.team;
    let retained = event_about_tenant(&pruned, "TenantRetained").await;
    team.declare_tenant("").await;
    run_quoted(team, &retained).await;
    team.wait_for_status(&team.tenant_object(), "tenantId", pruned.id.as_str()).await;
    wait_until_ready(team).await;
    pruned.wait_until_mail_is_read().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_belong_to_the_new_tenant_once_they_are_created_again() {
    let pruned = PrunedTenant::start("").await;
    let PrunedTenant { installation, team, .. } = &pruned;
    team.declare_tenant("").await;
    for object in TEAM_OBJECTS {
        team.wait_for_reason(object, "Ready", "TenantReplaced").await;
    }
    pruned.delete_objects().await;
    pruned.create_objects_again().await;
    assert_ne!(team.tenant_id().await, pruned.id);
    let token = team.secret_value("ci-token", "token").await;
    let path = format!("/v1/inbox/{}", pruned.address);
    let answer = installation.request(reqwest::Method::GET, &path).live(&token).send().await;
    assert_eq!(answer.status, 204, "it reads what the former tenant had: {}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_applied_again_under_another_name_adopts_the_former_one() {
    let mut pruned = PrunedTenant::start("").await;
    for object in TEAM_OBJECTS {
        let shown = pruned.team.wait_for_reason(object, "Ready", "TenantRefNotPermitted").await;
        let message = condition_message(&shown, "Ready");
        assert!(message.contains(&format!("{ADOPT}={}", pruned.id)), "{message}");
    }
    let former = std::mem::replace(&mut pruned.team.tenant, unique_name("renamed"));
    // `tenantRef` can't be changed, so they are created again. Without the grant no mail is deleted.
    pruned.delete_objects().await;
    let PrunedTenant { installation, team, id, .. } = &pruned;
    let spec = format!("allowedNamespaces: {}", team.selector());
    adopt(team, &team.tenant, id, &spec).await;
    team.wait_for_status(&team.tenant_object(), "tenantId", id.as_str()).await;
    assert!(!installation.tenant_exists(&former).await, "the former name is taken");
    pruned.create_objects_again().await;
    pruned.wait_until_mail_is_read().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_tenant_that_was_deleted_with_its_data_start_over_in_the_next_one() {
    let pruned = PrunedTenant::start("deletionPolicy: Delete").await;
    let PrunedTenant { installation, team, id, .. } = &pruned;
    team.wait_for_reason("customdomain/mail", "Ready", "TenantRefNotPermitted").await;
    team.declare_tenant("").await;
    assert_ne!(&team.tenant_id().await, id);
    installation.verify_domain(team, "customdomain/mail").await;
    wait_until_ready(team).await;
    let token = team.secret_value("ci-token", "token").await;
    let path = format!("/v1/inbox/{}", pruned.address);
    let answer = installation.request(reqwest::Method::GET, &path).live(&token).send().await;
    assert_eq!(answer.status, 204, "it reads what the former tenant had: {}", answer.text());
}
