//! Mode `recursive`: the answers of the configured resolvers count.

use tempmail_model::verification::Finding::{Found, Mismatch, Missing, Unknown};
use tempmail_runtime::config::DnsMode;
use tempmail_tests::TestDns;
use tempmail_tests::dns::NameServerFault;
use tempmail_verification::{DomainFindings, ExpectedRecords, Resolver, Transport};

use super::{
    DOMAIN, EXPECTED_TXT, INCUMBENT_TOKEN, INCUMBENT_TXT, MX_HOST, TOKEN, TXT_NAME, found, question,
};

async fn find(world: &TestDns) -> DomainFindings {
    let resolver = Resolver::new(&world.settings(DnsMode::Recursive)).unwrap();
    resolver.find(&question(), Transport::UdpFirst).await
}

#[tokio::test]
async fn accepts_the_answer_of_the_resolver() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    assert_eq!(find(&world).await, found(Missing, Missing));
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(find(&world).await, found(Found, Found));
    world.set_txt(TXT_NAME, &["tempmail-verify=another"]).await;
    world.set_mx(DOMAIN, &[(10, "elsewhere.example")]).await;
    assert_eq!(find(&world).await, found(Mismatch, Mismatch));
    assert_eq!(world.seed_server().queries(), []);
    assert!(world.recursive_server().queries().iter().all(|asked| asked.recursion_desired));
    assert!(
        servers[0].queries().iter().all(|asked| asked.udp_payload_size.is_none()),
        "only the resolver asks it"
    );
}

#[tokio::test]
async fn counts_no_vote_for_a_failing_resolver() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[0].set_fault(NameServerFault::ServFail);
    assert_eq!(find(&world).await, found(Unknown, Unknown));
    servers[0].clear_fault();
    world.recursive_server().set_fault(NameServerFault::Refused);
    assert_eq!(find(&world).await, found(Unknown, Unknown));
    world.recursive_server().set_fault(NameServerFault::Referral { authoritative: false });
    assert_eq!(find(&world).await, found(Unknown, Unknown), "a server that is no resolver");
}

#[tokio::test]
async fn requires_the_record_from_every_resolver_that_answers() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    let mut settings = world.settings(DnsMode::Recursive);
    settings.servers.push(world.seed());
    let resolver = Resolver::new(&settings).unwrap();
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Missing, Missing));
    world.seed_server().set_fault(NameServerFault::ServFail);
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Found, Found));
}

#[tokio::test]
async fn follows_aliases_within_the_answer() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.domain("elsewhere.test", 1).await;
    world.set_cname(TXT_NAME, "acme.elsewhere.test").await;
    assert_eq!(find(&world).await.txt.finding, Missing);
    world.set_txt("acme.elsewhere.test", &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Found);
    world.clear("acme.elsewhere.test").await;
    world.set_cname("acme.elsewhere.test", TXT_NAME).await;
    assert_eq!(find(&world).await.txt.finding, Unknown, "a loop");
}

#[tokio::test]
async fn checks_the_record_of_the_incumbent() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_txt(TXT_NAME, &[EXPECTED_TXT, INCUMBENT_TXT]).await;
    let resolver = Resolver::new(&world.settings(DnsMode::Recursive)).unwrap();
    let question = ExpectedRecords { incumbent_token: Some(INCUMBENT_TOKEN), ..question() };
    assert_eq!(resolver.find(&question, Transport::TcpOnly).await.incumbent_txt, Found);
    world.set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    assert_eq!(resolver.find(&question, Transport::TcpOnly).await.incumbent_txt, Missing);
}

#[tokio::test]
async fn sends_the_deciding_query_over_tcp() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.recursive_server().set_fault(NameServerFault::SpoofedUdp(vec![EXPECTED_TXT.to_owned()]));
    let resolver = Resolver::new(&world.settings(DnsMode::Recursive)).unwrap();
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await.txt.finding, Found);
    assert_eq!(resolver.find(&question(), Transport::TcpOnly).await.txt.finding, Missing);
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
