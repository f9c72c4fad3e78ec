//! Custom domains, declared.

use tempmail_tests::World;
use tempmail_tests::kubernetes::{Team, condition};

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_verified_once_its_records_are_set() {
    let world = World::shared().await;
    let team = Team::with(world.cluster, "").await;
    let domain = team.domain("mail");
    team.apply("CustomDomain", "ours", &format!("domain: {domain}")).await.expect("it is taken");
    let shown = team.wait("customdomain/ours", "Accepted").await;
    assert_eq!(condition(&shown, "Ready").expect("Ready")["status"], "False");
    let records = &shown["status"]["verification"]["records"];
    let token = records[0]["value"].as_str().and_then(|value| value.strip_prefix("tempmail-verify="));
    let mx_host = records[1]["value"].as_str().expect("a host");
    world.dns.domain(&domain, 1).await;
    world.dns.set_verified(&domain, token.expect("a token"), mx_host).await;
    let shown = team.wait("customdomain/ours", "Verified").await;
    assert_eq!(condition(&shown, "Ready").expect("Ready")["status"], "True");
    assert_eq!(shown["status"]["verification"]["state"], "Verified");
}
