//! A verified domain is checked daily, and fails after seven failed checks in a row.

use tempmail_tests::app::Domain;
use tempmail_tests::dns::{NameServer, NameServerFault};
use tempmail_tests::{App, TestDns, send_mail, smtp};

use super::state;

struct Verified {
    app: App,
    dns: TestDns,
    server: NameServer,
    domain: Domain,
}

impl Verified {
    async fn start() -> Self {
        let dns = TestDns::start().await;
        let server = dns.domain("ships.test", 1).await.remove(0);
        let app = App::builder().dns(&dns).start().await;
        let domain = app.domain(&app.tenant, "ships.test").await;
        dns.publish(&[&domain]).await;
        assert_eq!(app.check_domain_once_allowed(&app.tenant, &domain.id).await["verify_status"], "verified");
        Self { app, dns, server, domain }
    }

    async fn after_days(&self, days: u32) -> (String, String) {
        for _ in 0..days {
            self.app.advance_hours(24);
            self.app.worker_pass().await;
        }
        self.app.domain_state(&self.app.tenant, &self.domain.id).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fails_a_domain_after_seven_failed_checks_in_a_row() {
    let world = Verified::start().await;
    world.dns.set_mx("ships.test", &[(10, "mx.elsewhere.test")]).await;
    assert_eq!(world.after_days(6).await, state("verified", ""));
    world.app.deliver("any@ships.test", "still served", "").await;
    // More looks within a day do not count.
    for _ in 0..3 {
        world.app.check_domain_once_allowed(&world.app.tenant, &world.domain.id).await;
        world.app.worker_pass().await;
    }
    assert_eq!(world.after_days(0).await, state("verified", ""));
    assert_eq!(world.after_days(1).await, state("failed", "records_lost"));
    let record = world.app.domain_record(&world.app.tenant, &world.domain.id).await;
    assert_eq!((&record["mx_configured"], &record["dns_records"][0]["ok"]), (&false.into(), &true.into()));
    let message = smtp::message("a@client.example", "after", "");
    let reply = send_mail(world.app.smtp(), "a@client.example", "other@ships.test", &message).await;
    assert_eq!(reply.status(), "550 5.7.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_the_count_when_the_records_are_found() {
    let world = Verified::start().await;
    world.dns.clear("_tempmail.ships.test").await;
    assert_eq!(world.after_days(6).await, state("verified", ""));
    world.dns.publish(&[&world.domain]).await;
    assert_eq!(world.after_days(1).await, state("verified", ""));
    world.dns.clear("_tempmail.ships.test").await;
    assert_eq!(world.after_days(6).await, state("verified", ""));
    assert_eq!(world.after_days(1).await, state("failed", "records_lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_a_check_without_an_answer() {
    let world = Verified::start().await;
    world.dns.clear("_tempmail.ships.test").await;
    assert_eq!(world.after_days(6).await, state("verified", ""));
    world.server.set_fault(NameServerFault::ServFail);
    assert_eq!(world.after_days(10).await, state("verified", ""));
    world.server.clear_fault();
    assert_eq!(world.after_days(1).await, state("failed", "records_lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hides_mail_until_the_domain_is_verified_again() {
    let world = Verified::start().await;
    let app = &world.app;
    world.dns.clear("_tempmail.ships.test").await;
    assert_eq!(world.after_days(6).await, state("verified", ""));
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("any@ships.test", "kept", "").await;
    app.deliver("box@ships.test", "kept in the mailbox", "").await;
    let id = app.emails("any@ships.test").await[0]["id"].as_str().unwrap().to_owned();
    let blocked = app.start_long_poll(&app.tenant.live, "/v1/inbox/other@ships.test").await;

    assert_eq!(world.after_days(1).await, state("failed", "records_lost"));
    let ended = tempmail_tests::wait::within_deadline("the wait ends", blocked).await.unwrap();
    ended.assert_v1_error(404, "not_found");
    app.get("/v1/inbox/any@ships.test").await.assert_v1_error(404, "not_found");
    assert_eq!(app.get(&format!("/v1/email/{id}")).await.status, 410, "by the id's own time");
    app.get_mailbox(&mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");

    world.dns.publish(&[&world.domain]).await;
    let checked = app.check_domain_once_allowed(&app.tenant, &world.domain.id).await;
    assert_eq!(checked["verify_status"], "verified");
    assert_eq!(app.emails("any@ships.test").await[0]["subject"], "kept");
    assert_eq!(app.messages(&mailbox).await[0]["subject"], "kept in the mailbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_what_is_left_when_another_tenant_verifies_the_name() {
    let world = Verified::start().await;
    let app = &world.app;
    world.dns.clear("_tempmail.ships.test").await;
    assert_eq!(world.after_days(6).await, state("verified", ""));
    app.deliver("any@ships.test", "of the former owner", "").await;
    assert_eq!(world.after_days(1).await, state("failed", "records_lost"));

    let buyer = app.another_tenant("buyer").await;
    let bought = app.domain(&buyer, "ships.test").await;
    world.dns.publish(&[&bought]).await;
    assert_eq!(app.check_domain_once_allowed(&buyer, &bought.id).await["verify_status"], "verified");
    // The name comes back, the mail does not.
    world.dns.publish(&[&world.domain]).await;
    assert_eq!(
        app.check_domain_once_allowed(&app.tenant, &world.domain.id).await["verify_status"],
        "verified"
    );
    app.assert_inbox_is_empty("any@ships.test").await;
}
