//! CustomDomain: verification, and one object for each domain.

use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::Installation;
use tempmail_tests::kubernetes::{Team, assert_conditions, condition_message};

#[tokio::test(flavor = "multi_thread")]
async fn verifies_a_domain_when_its_records_are_published() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    team.apply("CustomDomain", "ours", &format!("domain: {}", team.domain("mail"))).await;
    let shown = team.wait_for_condition("customdomain/ours", "Accepted").await;
    assert_conditions(&shown, &[("Ready", "False")]);
    installation.verify_domain(&team, "customdomain/ours").await;
    let shown = team.get("customdomain/ours").await;
    assert_conditions(&shown, &[("Ready", "True")]);
    assert_eq!(shown["status"]["verification"]["state"], "Verified");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_second_object_for_a_domain_when_the_first_is_deleted() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let domain = team.domain("mail");
    let spec = format!("domain: {domain}");
    team.apply("CustomDomain", "first", &spec).await;
    let first = team.wait_for_condition("customdomain/first", "Accepted").await;
    team.apply("CustomDomain", "second", &spec).await;
    let second = team.wait_for_reason("customdomain/second", "Accepted", "DomainClaimed").await;
    assert_conditions(&second, &[("Stalled", "True")]);
    assert!(second["status"].get("domainId").is_none(), "{second}");
    let message = condition_message(&second, "Accepted");
    let holder = format!("The object {}/first manages the domain {domain} ", team.namespace.name());
    assert!(message.starts_with(&holder), "{message}");

    team.delete("customdomain/first").await;
    let second = team.wait_for_condition("customdomain/second", "Accepted").await;
    assert_ne!(second["status"]["domainId"], first["status"]["domainId"]);

    // An object that is created again at once gets another domain.
    team.delete("customdomain/second").await;
    team.apply("CustomDomain", "second", &spec).await;
    let recreated = team.wait_for_condition("customdomain/second", "Accepted").await;
    assert_ne!(recreated["status"]["domainId"], second["status"]["domainId"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopts_a_domain_of_the_tenant_unless_the_spec_says_never() {
    let installation = Installation::shared().await;
    let team = Team::new(installation.cluster).await;
    let (domain, pro) =
        (team.domain("mail"), installation.token(&team.tenant_id().await, TokenKind::Pro).await);
    let request = installation.request(Method::POST, "/pro/api/domains").bearer(&pro);
    let made = request.json(&json!({ "domain": domain })).send().await.expect(201);
    let spec = format!("domain: {domain}");
    team.apply("CustomDomain", "ours", &format!("{spec}, adoptionPolicy: Never")).await;
    team.wait_for_reason("customdomain/ours", "Accepted", "ExistsUnmanaged").await;
    team.apply("CustomDomain", "ours", &spec).await;
    let shown = team.wait_for_condition("customdomain/ours", "Accepted").await;
    assert_eq!(shown["status"]["domainId"], made["id"]);
    let event = team.wait_for_event_about("customdomain/ours", "Adopted").await;
    assert!(event.starts_with(&format!("Adopted the custom domain {domain}, ")), "{event}");
}
