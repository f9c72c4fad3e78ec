//! What must be in the records.

use tempmail_model::verification::Finding::{Found, Mismatch, Missing, Unknown};
use tempmail_tests::TestDns;

use super::{
    DOMAIN, EXPECTED_TXT, INCUMBENT_TXT, MX_HOST, TOKEN, TXT_NAME, find, find_with_incumbent, found,
    question, resolver,
};

#[tokio::test]
async fn finds_both_records() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 2).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(find(&world).await, found(Found, Found));
}

#[tokio::test]
async fn reports_both_records_missing() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 2).await;
    assert_eq!(find(&world).await, found(Missing, Missing));
}

#[tokio::test]
async fn reports_a_record_missing_beside_other_types() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_mx(TXT_NAME, &[(10, MX_HOST)]).await;
    world.set_txt(DOMAIN, &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await, found(Missing, Missing), "NOERROR without records");
}

#[tokio::test]
async fn compares_the_text_exactly() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    for wrong in [
        "tempmail-verify=claimant2",
        "tempmail-verify=claiman",
        "tempmail-verify=Claimant",
        "Tempmail-Verify=claimant",
        "tempmail-verify= claimant",
        " tempmail-verify=claimant",
        "claimant",
        "\"tempmail-verify=claimant\"",
        "tempmail-verify=",
    ] {
        world.set_txt(TXT_NAME, &[wrong]).await;
        assert_eq!(find(&world).await.txt.finding, Mismatch, "{wrong}");
    }
}

#[tokio::test]
async fn finds_the_text_beside_others() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_txt(TXT_NAME, &["v=spf1 -all", "tempmail-verify=another", EXPECTED_TXT]).await;
    assert_eq!(find(&world).await.txt.finding, Found);
}

#[tokio::test]
async fn joins_character_strings_of_one_record_only() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    servers[0].set_txt_in_pieces(TXT_NAME, &["tempmail-", "verify=", "claim", "ant"]).await;
    assert_eq!(find(&world).await.txt.finding, Found);
    servers[0].set_txt(TXT_NAME, &["tempmail-verify=", "claimant"]).await;
    assert_eq!(find(&world).await.txt.finding, Mismatch);
}

#[tokio::test]
async fn ignores_case_and_preference_of_the_exchange() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    for exchanges in [
        &[(0, "mx.inbox.example")][..],
        &[(65535, "MX.Inbox.EXAMPLE.")],
        &[(1, "mail.elsewhere.example"), (50, "mx.inbox.example")],
    ] {
        world.set_mx(DOMAIN, exchanges).await;
        assert_eq!(find(&world).await.mx.finding, Found, "{exchanges:?}");
    }
}

#[tokio::test]
async fn ignores_case_and_trailing_dot_of_our_host() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_mx(DOMAIN, &[(10, MX_HOST)]).await;
    let mut question = question();
    question.mx_host = "MX.inbox.Example.";
    let findings = resolver(&world).find(&question, tempmail_verification::Transport::UdpFirst).await;
    assert_eq!(findings.mx.finding, Found);
}

#[tokio::test]
async fn reports_a_mismatch_for_another_exchange() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    for exchange in ["mail.elsewhere.example", "x.mx.inbox.example", "inbox.example", "mx.inbox.example.test"]
    {
        world.set_mx(DOMAIN, &[(10, exchange)]).await;
        assert_eq!(find(&world).await.mx.finding, Mismatch, "{exchange}");
    }
}

#[tokio::test]
async fn reports_a_mismatch_for_a_null_mx() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_mx(DOMAIN, &[(0, ".")]).await;
    assert_eq!(find(&world).await.mx.finding, Mismatch);
    world.set_mx(DOMAIN, &[(0, "."), (10, MX_HOST)]).await;
    assert_eq!(find(&world).await.mx.finding, Mismatch, "whatever is beside it");
}

#[tokio::test]
async fn reports_a_mismatch_for_an_alias_of_our_host() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_cname("mail.acme.test", MX_HOST).await;
    world.set_mx(DOMAIN, &[(10, "mail.acme.test")]).await;
    assert_eq!(find(&world).await.mx.finding, Mismatch);
}

#[tokio::test]
async fn checks_the_record_of_the_incumbent_too() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    world.set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    let findings = find_with_incumbent(&world).await;
    assert_eq!((findings.txt.finding, findings.incumbent_txt), (Found, Missing));

    world.set_txt(TXT_NAME, &[EXPECTED_TXT, INCUMBENT_TXT]).await;
    let findings = find_with_incumbent(&world).await;
    assert_eq!((findings.txt.finding, findings.incumbent_txt), (Found, Found));

    world.set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    servers[1].set_txt(TXT_NAME, &[INCUMBENT_TXT, EXPECTED_TXT]).await;
    assert_eq!(
        find_with_incumbent(&world).await.incumbent_txt,
        Found,
        "one server is enough for the incumbent"
    );

    world.set_txt(TXT_NAME, &[INCUMBENT_TXT]).await;
    let findings = find_with_incumbent(&world).await;
    assert_eq!((findings.txt.finding, findings.incumbent_txt), (Mismatch, Found));
    assert_eq!(find(&world).await.incumbent_txt, Unknown, "nobody holds it");
}

#[tokio::test]
async fn reports_unknown_for_an_invalid_name() {
    let world = TestDns::start().await;
    let long = vec!["a".repeat(60); 4].join(".");
    for domain in ["a..b", &long, ""] {
        let mut question = question();
        question.domain = domain;
        let findings = resolver(&world).find(&question, tempmail_verification::Transport::UdpFirst).await;
        assert_eq!(findings, found(Unknown, Unknown), "{domain}");
    }
}
