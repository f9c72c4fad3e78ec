//! The TXT record may be an alias; the domain and its exchange may not.

use tempmail_model::verification::Finding::{Found, Mismatch, Missing, Unknown};
use tempmail_tests::TestDns;
use tempmail_tests::dns::NameServerFault;

use super::{DOMAIN, EXPECTED_TXT, MX_HOST, TXT_NAME, find, find_with_incumbent, found};

#[tokio::test]
async fn follows_an_alias_to_the_servers_of_its_target() {
    let world = TestDns::start().await;
    let own = world.domain(DOMAIN, 1).await;
    world.domain("elsewhere.test", 1).await;
    world.set_mx(DOMAIN, &[(10, MX_HOST)]).await;
    world.set_cname(TXT_NAME, "acme.elsewhere.test").await;
    assert_eq!(find(&world).await, found(Missing, Found), "there is nothing yet");
    world.set_txt("acme.elsewhere.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await, found(Found, Found));

    // What the own server believes of the target does not count.
    own[0].add_zone("elsewhere.test").await;
    own[0].set_txt("acme.elsewhere.test", &["tempmail-verify=another"]).await;
    assert_eq!(find(&world).await, found(Found, Found));
}

#[tokio::test]
async fn follows_an_alias_inside_the_zone() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_cname(TXT_NAME, "verify.acme.test").await;
    world.set_txt("verify.acme.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Found);
}

#[tokio::test]
async fn follows_eight_aliases_and_not_nine() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.domain("chain.test", 1).await;
    world.set_cname(TXT_NAME, "a1.chain.test").await;
    for link in 1..8 {
        world.set_cname(&format!("a{link}.chain.test"), &format!("a{}.chain.test", link + 1)).await;
    }
    world.set_txt("a8.chain.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Found);
    world.clear("a8.chain.test").await;
    world.set_cname("a8.chain.test", "a9.chain.test").await;
    world.set_txt("a9.chain.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Unknown);
}

#[tokio::test]
async fn counts_no_vote_for_a_loop_of_aliases() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 2).await;
    world.domain("elsewhere.test", 1).await;
    world.set_cname(TXT_NAME, "acme.elsewhere.test").await;
    world.set_cname("acme.elsewhere.test", TXT_NAME).await;
    let findings = find_with_incumbent(&world).await;
    assert_eq!((findings.txt.finding, findings.incumbent_txt), (Unknown, Unknown));
    world.clear(TXT_NAME).await;
    world.set_cname(TXT_NAME, TXT_NAME).await;
    assert_eq!(find(&world).await.txt.finding, Unknown, "an alias of itself");
}

#[tokio::test]
async fn requires_the_record_behind_every_target() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    servers[0].set_cname(TXT_NAME, "one.acme.test").await;
    servers[1].set_cname(TXT_NAME, "two.acme.test").await;
    world.set_txt("one.acme.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Missing);
    world.set_txt("two.acme.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Found);
}

#[tokio::test]
async fn counts_no_vote_for_an_alias_without_an_answer() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    let elsewhere = world.domain("elsewhere.test", 1).await;
    world.set_cname(TXT_NAME, "acme.elsewhere.test").await;
    elsewhere[0].set_fault(NameServerFault::ServFail);
    assert_eq!(find(&world).await.txt.finding, Unknown);
}

#[tokio::test]
async fn reports_a_mismatch_for_a_domain_that_is_an_alias() {
    let world = TestDns::start().await;
    world.domain("test", 1).await;
    world.domain("elsewhere.test", 1).await;
    world.set_cname(DOMAIN, "elsewhere.test").await;
    world.set_mx("elsewhere.test", &[(10, MX_HOST)]).await;
    world.set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await, found(Found, Mismatch));
}
