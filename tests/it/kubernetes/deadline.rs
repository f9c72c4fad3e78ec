//! 72 hours are a stored time: they pass while operators come and go.

use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Tenant;
use tempmail_tests::kubernetes::{Team, World, condition};
use tempmail_tests::smtp::{message, send_mail};

const OBJECT: &str = "customdomain/ours";

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_without_records_fails_after_72_hours_whoever_looks() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let domain = team.domain("mail");
    world.dns.domain(&domain, 1).await;
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.expect("it is taken");
    let pending = team.wait_for_reason(OBJECT, "Verified", "TxtRecordMissing").await;
    let pro = token(&world, &team).await;

    for restart in 1..=3 {
        world.app.advance_hours(23);
        world.app.start_operator(world.cluster.client());
        let looked = format!("look-{restart}");
        ask(&team, &looked).await;
        let shown = handled(&team, &looked).await;
        assert_eq!(shown["status"]["verification"]["state"], "Pending");
        let deadline = |shown: &Value| shown["status"]["verification"]["deadline"].clone();
        assert_eq!(deadline(&shown), deadline(&pending), "the time does not begin anew");
    }
    world.app.advance_hours(4);

    let failed = team.wait(OBJECT, "Stalled").await;
    assert_eq!(condition(&failed, "Verified").expect("Verified")["reason"], "VerificationTimedOut");
    assert_eq!(condition(&failed, "Ready").expect("Ready")["status"], "False");
    assert_eq!(failed["status"]["verification"]["state"], "Failed");
    let events = ["get", "events", "--field-selector", "reason=VerificationTimedOut", "-o", "name"];
    let told = team.kubectl(&events).await.expect("events can be listed");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(over_http(&world, &pro).await["verify_status"], "failed");
    assert_eq!(mail_to(&world, &domain).await, 550);

    // Asked for, it begins anew, and can be verified then.
    let records = &failed["status"]["verification"]["records"];
    let value = records[0]["value"].as_str().and_then(|value| value.strip_prefix("tempmail-verify="));
    let mx_host = records[1]["value"].as_str().expect("a host");
    ask(&team, "anew").await;
    let anew = handled(&team, "anew").await;
    assert_eq!(anew["status"]["verification"]["state"], "Pending");
    assert!(condition(&anew, "Stalled").is_none(), "{anew:#}");
    world.dns.set_verified(&domain, value.expect("a token"), mx_host).await;
    team.wait(OBJECT, "Verified").await;
    assert_eq!(over_http(&world, &pro).await["verify_status"], "verified");
    assert_eq!(mail_to(&world, &domain).await, 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_while_no_operator_ran_is_shown_by_the_next() {
    let mut world = World::start().await;
    let team = Team::with(&world.cluster, "").await;
    let domain = team.domain("mail");
    world.dns.domain(&domain, 1).await;
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.expect("it is taken");
    let shown = team.wait_for_reason(OBJECT, "Verified", "TxtRecordMissing").await;
    let pro = token(&world, &team).await;
    world.app.stop_operator();

    let record = over_http(&world, &pro).await;
    let mx_host = shown["status"]["verification"]["records"][1]["value"].as_str().expect("a host");
    let value = record["verify_token"].as_str().expect("a token");
    world.dns.set_verified(&domain, value, mx_host).await;
    let path = format!("/pro/api/domains/{}/verify", record["id"].as_str().expect("an id"));
    world.request(Method::POST, &path).bearer(&pro).send().await.expect(200);
    assert_eq!(over_http(&world, &pro).await["verify_status"], "verified");
    let before = team.get(OBJECT).await;
    assert_eq!(before["status"]["verification"]["state"], "Pending", "nobody shows it");

    world.app.start_operator(world.cluster.client());
    let shown = team.wait(OBJECT, "Verified").await;
    assert_eq!(shown["status"]["verification"]["state"], "Verified");
}

/// Asks for a look at the records.
async fn ask(team: &Team<'_>, value: &str) {
    let annotation = format!("tempmail.dev/verify-requested-at={value}");
    team.kubectl(&["annotate", "--overwrite", OBJECT, &annotation]).await.expect("it is annotated");
}

async fn handled(team: &Team<'_>, value: &str) -> Value {
    let path = format!("--for=jsonpath={{.status.lastHandledVerifyAt}}={value}");
    team.kubectl(&["wait", OBJECT, &path, "--timeout=120s"]).await.expect("it is looked at");
    team.get(OBJECT).await
}

async fn token<C>(world: &World<C>, team: &Team<'_>) -> String {
    let tenant = team.get(&format!("tenant/{}", team.tenant)).await;
    let id = tenant["status"]["tenantId"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let tenant = Tenant { id, live: String::new(), pro: String::new() };
    world.app.token(&tenant, TokenKind::Pro).await
}

/// The tenant's only domain.
async fn over_http<C>(world: &World<C>, pro: &str) -> Value {
    let list = world.request(Method::GET, "/pro/api/domains").bearer(pro).send().await.expect(200);
    list["domains"][0].clone()
}

async fn mail_to<C>(world: &World<C>, domain: &str) -> u16 {
    let message = message("Ada <ada@client.example>", "hello", "");
    send_mail(world.app.smtp(), "ada@client.example", &format!("ada@{domain}"), &message).await.code
}
