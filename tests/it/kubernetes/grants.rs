//! Grants that are lost: what a namespace was granted ends, whatever its objects say and whether they exist.

mod over_http;
mod sequences;

use std::slice;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::kubernetes::{Cluster, Installation, SharedInstallation, Team, condition, secret_value};
use tempmail_tests::rows::SYSTEM_DOMAIN;
use tempmail_tests::wait::{DEADLINE, eventually};
use tokio::time::sleep;

const PAUSED: &str = "tempmail.dev/paused";
/// Time between two tries of a credential.
const POLL: Duration = Duration::from_millis(50);

/// What gives access to a tenant.
#[derive(Debug, Clone)]
enum Credential {
    Live(String),
    /// A minted token and its address, which has mail.
    Minted(String, String),
    Pro(String),
    Jwt(String),
}

impl Credential {
    /// The status of a request with it.
    async fn status<C>(&self, installation: &Installation<C>) -> u16 {
        match self {
            Self::Live(token) => installation.live_token_status(token).await,
            Self::Minted(token, address) => {
                let request = installation.request(Method::GET, &format!("/v1/inbox/{address}"));
                request.live(token).send().await.status
            }
            Self::Pro(token) => installation.get_as_pro(token, "/pro/api/domains").await.status,
            Self::Jwt(jwt) => installation.request(Method::GET, "/api/me").bearer(jwt).send().await.status,
        }
    }

    /// Waits until it is refused.
    async fn wait_until_refused<C>(&self, installation: &Installation<C>) {
        assert_refused(installation, slice::from_ref(self), Instant::now(), DEADLINE).await;
    }
}

/// Waits until all of them are refused, and asserts that none is accepted later than `bound` after the loss.
async fn assert_refused<C>(
    installation: &Installation<C>,
    credentials: &[Credential],
    lost_at: Instant,
    bound: Duration,
) {
    for credential in credentials {
        loop {
            let after = lost_at.elapsed();
            if credential.status(installation).await == 401 {
                break;
            }
            assert!(after < bound, "{credential:?} is accepted {after:?} after the loss of the grant");
            sleep(POLL).await;
        }
    }
}

/// The same without a bound that a busy machine could miss.
async fn assert_refused_soon<C>(installation: &Installation<C>, credentials: &[Credential]) {
    assert_refused(installation, credentials, Instant::now(), DEADLINE).await;
}

/// Pauses an object, and waits until it says so.
async fn pause(team: &Team, object: &str) {
    team.annotate(object, PAUSED, "true").await;
    let is_paused = |shown: &Value| condition(shown, "ReconciliationPaused").is_some();
    team.wait_until(object, "the condition ReconciliationPaused", is_paused).await;
}

/// A mailbox of the system domain that a Mailbox declares, with the name of the tenant.
fn address(team: &Team) -> String {
    format!("{}@{SYSTEM_DOMAIN}", team.tenant)
}

/// Declares the Mailbox `box` and waits until it is ready; a JWT of it.
async fn declare_mailbox<C>(installation: &Installation<C>, team: &Team, more: &str) -> Credential {
    team.apply_ready("Mailbox", "box", &format!("address: {}, {more}", address(team))).await;
    let password = team.secret_value("box-mailbox", "password").await;
    let signed_in = installation.sign_in(&address(team), &password).await.expect(200);
    Credential::Jwt(signed_in["token"].as_str().expect("a JWT").to_owned())
}

/// Declares the ApiToken `ci` and waits until it is ready; the token.
async fn declare_live_token(team: &Team) -> Credential {
    team.apply_ready("ApiToken", "ci", "type: Live").await;
    Credential::Live(team.secret_value("ci-token", "token").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_what_paused_objects_were_granted_and_restores_it_when_they_are_resumed() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let credentials = [declare_live_token(&team).await, declare_mailbox(installation, &team, "").await];
    team.apply_ready("Webhook", "hook", "url: 'https://hooks.example.com/in'").await;
    for object in ["apitoken/ci", "mailbox/box", "webhook/hook"] {
        pause(&team, object).await;
    }
    team.revoke_grant().await;
    assert_refused_soon(installation, &credentials).await;
    assert_eq!(installation.tokens_and_webhooks(&team).await, (0, 0));

    team.declare_tenant("").await;
    // An object that is not paused shows that the grant is back.
    team.apply_ready("ApiToken", "other", "type: Live").await;
    assert_eq!(installation.tokens_and_webhooks(&team).await, (1, 0), "a paused object is restored");
    for credential in &credentials {
        assert_eq!(credential.status(installation).await, 401);
    }
    for object in ["apitoken/ci", "mailbox/box", "webhook/hook"] {
        team.remove_annotation(object, PAUSED).await;
        team.wait_for_condition(object, "Ready").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_tenant_still_takes_grants_away() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let live = declare_live_token(&team).await;
    pause(&team, &team.tenant_object()).await;
    team.revoke_grant().await;
    assert_refused_soon(installation, &[live]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_what_a_deleted_tenant_granted_to_paused_objects_for_good() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let live = declare_live_token(&team).await;
    pause(&team, "apitoken/ci").await;
    let id = team.tenant_id().await;
    team.delete(&team.tenant_object()).await;
    let metadata = format!("annotations: {{tempmail.dev/adopt-tenant: '{id}'}}");
    let spec = format!("allowedNamespaces: {}", team.selector());
    team.try_apply_with("Tenant", &team.tenant, &metadata, &spec).await.expect("the Tenant is accepted");
    team.wait_for_condition(&team.tenant_object(), "Ready").await;
    live.wait_until_refused(installation).await;
}

/// Deletes a team's objects without their finalizers, and its namespace, while no operator runs.
async fn lose_objects_and_namespace(installation: &mut Installation<Cluster>, team: &Team) {
    installation.app.stop_operator().await;
    team.delete_without_finalizers("apitoken/ci").await;
    team.delete_without_finalizers("mailbox/box").await;
    team.delete(&format!("namespace/{}", team.namespace.name())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_at_the_start_what_was_lost_while_no_operator_ran() {
    let mut installation = Installation::exclusive().await;
    let paused = Team::new(&installation.cluster).await;
    let gone = Team::new(&installation.cluster).await;
    let mut credentials = vec![declare_live_token(&paused).await];
    pause(&paused, "apitoken/ci").await;
    credentials.push(declare_live_token(&gone).await);
    credentials.push(declare_mailbox(&installation, &gone, "").await);
    lose_objects_and_namespace(&mut installation, &gone).await;
    paused.revoke_grant().await;
    for credential in &credentials {
        assert_eq!(credential.status(&installation).await, 200, "no operator ran");
    }
    installation.start_operator();
    for credential in &credentials {
        credential.wait_until_refused(&installation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_the_credentials_of_objects_that_vanish_at_once_and_keeps_their_data() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let credentials = [declare_live_token(&team).await, declare_mailbox(installation, &team, "").await];
    installation.app.deliver(&address(&team), "kept", "").await;
    for object in ["apitoken/ci", "mailbox/box"] {
        // The operator would add the finalizer again.
        pause(&team, object).await;
        team.delete_without_finalizers(object).await;
    }
    for credential in &credentials {
        credential.wait_until_refused(installation).await;
    }
    assert_eq!(installation.visible_messages(&team.tenant_id().await).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenant_refuses_every_credential_until_it_is_resumed() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let credentials = [declare_live_token(&team).await, declare_mailbox(installation, &team, "").await];
    for (suspended, status) in [(true, 403), (false, 200)] {
        team.patch_tenant(json!({"suspended": suspended})).await;
        for credential in &credentials {
            eventually(&format!("{credential:?} is answered with {status}"), || async {
                (credential.status(installation).await == status).then_some(())
            })
            .await;
        }
    }
}

/// Tokens of the test.
const TOKENS: usize = 1_000;
/// Requests that are sent at once.
const REQUESTS: usize = 25;

/// Declares the tokens, and returns them when all are ready.
async fn declare_tokens(team: &Team) -> Vec<Credential> {
    let declared = stream::iter(0..TOKENS).map(|number| async move {
        team.apply("ApiToken", &format!("token-{number}"), "type: Live").await;
    });
    declared.buffer_unordered(REQUESTS).collect::<Vec<()>>().await;
    eventually("all tokens are ready", || async {
        let tokens = team.list("apitoken").await;
        let is_ready =
            |token: &Value| condition(token, "Ready").is_some_and(|ready| ready["status"] == "True");
        tokens.iter().all(is_ready).then_some(())
    })
    .await;
    let secrets = team.list("secret").await;
    secrets.iter().filter_map(|secret| secret_value(secret, "token")).map(Credential::Live).collect()
}

/// Asserts that none of them is accepted later than `bound` after the loss of the grant.
async fn a_thousand_tokens_are_refused_after(bound: Duration) {
    let installation = Installation::exclusive().await;
    let team = Team::with_spec(&installation.cluster, &format!("limits: {{tokens: {TOKENS}}}")).await;
    let tokens = declare_tokens(&team).await;
    assert_eq!(tokens.len(), TOKENS);
    let accepted = stream::iter(&tokens).map(|token| token.status(&installation));
    let accepted: Vec<_> = accepted.buffer_unordered(REQUESTS).collect().await;
    assert!(accepted.iter().all(|status| *status == 200), "{accepted:?}");
    team.revoke_grant().await;
    let lost_at = Instant::now();
    let groups = tokens.chunks(TOKENS / REQUESTS);
    join_all(groups.map(|tokens| assert_refused(&installation, tokens, lost_at, bound))).await;
}

/// A verified domain and a mailbox with a mail, both with this deletion policy.
struct DeclaredData {
    installation: &'static SharedInstallation,
    team: Team,
    domain: String,
    jwt: Credential,
}

impl DeclaredData {
    async fn start(policy: &str) -> Self {
        let installation = Installation::shared().await;
        let team = Team::new(installation.cluster).await;
        let domain = team.domain("mail");
        let spec = format!("domain: {domain}, deletionPolicy: {policy}");
        team.apply("CustomDomain", "mail", &spec).await;
        installation.verify_domain(&team, "customdomain/mail").await;
        let jwt = declare_mailbox(installation, &team, &format!("deletionPolicy: {policy}")).await;
        installation.app.deliver(&address(&team), "kept", "").await;
        Self { installation, team, domain, jwt }
    }

    async fn delete_objects(&self) {
        self.team.delete("mailbox/box").await;
        self.team.delete("customdomain/mail").await;
    }

    /// Asserts that the tenant has the domain and the mail, and that neither gives access.
    async fn assert_left_inactive(&self) {
        let Self { installation, team, domain, jwt } = self;
        assert_eq!(installation.domain_manager(domain).await.as_deref(), Some("api"));
        installation.wait_for_mail_reply(&format!("a@{domain}"), 550).await;
        assert_eq!(installation.visible_messages(&team.tenant_id().await).await, 1);
        assert!([401, 403].contains(&jwt.status(installation).await));
        let pro = installation.token(&team.tenant_id().await, TokenKind::Pro).await;
        let accounts = installation.get_as_pro(&pro, "/pro/api/accounts").await;
        if accounts.status == 200 {
            assert_eq!(accounts.json()["accounts"][0]["address"], address(team));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_everything_inactive_whatever_the_deletion_policy_says() {
    for policy in ["Delete", "Retain"] {
        let data = DeclaredData::start(policy).await;
        data.team.revoke_grant().await;
        assert_refused_soon(data.installation, slice::from_ref(&data.jwt)).await;
        data.delete_objects().await;
        data.assert_left_inactive().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_everything_of_a_suspended_tenant() {
    let data = DeclaredData::start("Delete").await;
    data.team.declare_tenant("suspended: true").await;
    data.delete_objects().await;
    data.team.declare_tenant("suspended: false").await;
    data.assert_left_inactive().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_retained_with_the_grant_ends_with_the_grant() {
    let data = DeclaredData::start("Retain").await;
    data.delete_objects().await;
    assert_eq!(data.jwt.status(data.installation).await, 200, "it is the tenant's, and active");
    data.installation.wait_for_mail_reply(&format!("a@{}", data.domain), 250).await;
    data.team.revoke_grant().await;
    assert_refused_soon(data.installation, slice::from_ref(&data.jwt)).await;
    data.installation.wait_for_mail_reply(&format!("a@{}", data.domain), 550).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_adopts_what_was_left_inactive() {
    let data = DeclaredData::start("Delete").await;
    let DeclaredData { installation, team, domain, jwt } = &data;
    team.revoke_grant().await;
    assert_refused_soon(installation, slice::from_ref(jwt)).await;
    data.delete_objects().await;
    team.declare_tenant("").await;
    team.apply("CustomDomain", "again", &format!("domain: {domain}")).await;
    team.wait_for_condition("customdomain/again", "Verified").await;
    let spec = format!("address: {}, adoptionPolicy: IfUnowned", address(team));
    team.apply_ready("Mailbox", "again", &spec).await;
    let password = team.secret_value("again-mailbox", "password").await;
    installation.sign_in(&address(team), &password).await.expect(200);
    assert_eq!(jwt.status(installation).await, 401);
    assert_eq!(installation.visible_messages(&team.tenant_id().await).await, 1);
}

/// The loss of many grants at once.
mod chaos {
    use std::time::Duration;

    use tempmail_tests::wait::DEADLINE;

    use super::{a_thousand_tokens_are_refused_after, sequences};

    /// Within this time after the loss of its grant no token of a namespace works.
    const ENDS_WITHIN: Duration = Duration::from_secs(5);

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: 141 teams, which no machine is quick enough for to assert on time"]
    async fn no_order_of_actions_keeps_access_or_destroys_data() {
        sequences::run_all(4, DEADLINE).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: asserts on time, a thousand tokens"]
    async fn refuses_a_thousand_tokens_within_5_s() {
        a_thousand_tokens_are_refused_after(ENDS_WITHIN).await;
    }
}
