//! Two tenants claim one name: the one whose records are published gets it, and the incumbent keeps
//! it while its record is published.

use tempmail_tests::app::Domain;
use tempmail_tests::dns::{NameServer, NameServerFault};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Tenant, TestDns};

use super::{app_and_dns, state};

/// A domain that its seller has verified, and that its buyer claims.
struct Sale {
    app: App,
    dns: TestDns,
    server: NameServer,
    seller: Domain,
    buyer: Tenant,
    bought: Domain,
}

impl Sale {
    async fn start() -> Self {
        let dns = TestDns::start().await;
        let server = dns.domain("ships.test", 1).await.remove(0);
        let app = App::builder().dns(&dns).start().await;
        let buyer = app.another_tenant("buyer").await;
        let seller = app.domain(&app.tenant, "ships.test").await;
        dns.publish(&[&seller]).await;
        assert_eq!(app.check_domain_once_allowed(&app.tenant, &seller.id).await["verify_status"], "verified");
        let bought = app.domain(&buyer, "ships.test").await;
        Self { app, dns, server, seller, buyer, bought }
    }

    /// The buyer asks; what the two are then.
    async fn asked(&self) -> [(String, String); 2] {
        self.app.check_domain_once_allowed(&self.buyer, &self.bought.id).await;
        [
            self.app.domain_state(&self.app.tenant, &self.seller.id).await,
            self.app.domain_state(&self.buyer, &self.bought.id).await,
        ]
    }
}

fn kept() -> [(String, String); 2] {
    [state("verified", ""), state("pending", "")]
}

fn handed_over() -> [(String, String); 2] {
    [state("failed", "claimed_by_another"), state("verified", "")]
}

#[tokio::test(flavor = "multi_thread")]
async fn verifies_the_first_domain_and_fails_the_others() {
    let (app, dns) = app_and_dns("ships.test").await;
    let other = app.another_tenant("lighthouse").await;
    let (ours, theirs) =
        (app.domain(&app.tenant, "ships.test").await, app.domain(&other, "ships.test").await);
    dns.publish(&[&theirs]).await;
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &ours.id).await["verify_status"], "pending");
    assert_eq!(app.check_domain_once_allowed(&other, &theirs.id).await["verify_status"], "verified");
    assert_eq!(app.domain_state(&app.tenant, &ours.id).await, state("failed", "claimed_by_another"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_incumbent_while_both_records_exist() {
    let sale = Sale::start().await;
    sale.dns.publish(&[&sale.seller, &sale.bought]).await;
    let checked = sale.app.check_domain_once_allowed(&sale.buyer, &sale.bought.id).await;
    assert_eq!((&checked["txt_record"], &checked["mx_record"]), (&true.into(), &true.into()));
    assert_eq!(sale.asked().await, kept());
    sale.app.advance_hours(1);
    sale.app.worker_pass().await;
    assert_eq!(sale.asked().await, kept());
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_the_name_when_the_record_of_the_incumbent_is_absent() {
    let sale = Sale::start().await;
    sale.dns.publish(&[&sale.bought]).await;
    assert_eq!(sale.asked().await, handed_over());
    let record = sale.app.domain_record(&sale.app.tenant, &sale.seller.id).await;
    assert_eq!(record["dns_records"][0]["ok"], false);
    // The new incumbent's own mail, from here on.
    sale.app.deliver("any@ships.test", "for the buyer", "").await;
    assert_eq!(sale.app.emails_as(&sale.buyer.live, "any@ships.test").await[0]["subject"], "for the buyer");
    sale.app.get("/v1/inbox/any@ships.test").await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_the_name_in_a_scheduled_check() {
    let sale = Sale::start().await;
    sale.dns.publish(&[&sale.bought]).await;
    sale.app.clock.advance(jiff::SignedDuration::from_mins(5));
    sale.app.worker_pass().await;
    assert_eq!(sale.app.domain_state(&sale.buyer, &sale.bought.id).await, state("verified", ""));
    assert_eq!(
        sale.app.domain_state(&sale.app.tenant, &sale.seller.id).await,
        state("failed", "claimed_by_another")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_incumbent_without_an_answer() {
    let sale = Sale::start().await;
    sale.dns.publish(&[&sale.bought]).await;
    for fault in [NameServerFault::ServFail, NameServerFault::Refused, NameServerFault::Lame] {
        sale.server.set_fault(fault);
        assert_eq!(sale.asked().await, kept());
    }
    sale.server.clear_fault();
    assert_eq!(sale.asked().await, handed_over());
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_incumbent_if_an_answer_is_forged_over_udp() {
    let sale = Sale::start().await;
    sale.server.set_fault(NameServerFault::SpoofedUdp(vec![sale.bought.txt.clone()]));
    assert_eq!(sale.asked().await, kept(), "over TCP the seller's record is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_incumbent_if_one_server_has_its_record() {
    let dns = TestDns::start().await;
    let servers = dns.domain("ships.test", 2).await;
    let app = App::builder().dns(&dns).start().await;
    let buyer = app.another_tenant("buyer").await;
    let seller = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&seller]).await;
    assert_eq!(app.check_domain_once_allowed(&app.tenant, &seller.id).await["verify_status"], "verified");
    let bought = app.domain(&buyer, "ships.test").await;
    dns.publish(&[&seller, &bought]).await;
    servers[0].set_txt("_tempmail.ships.test", &[&bought.txt]).await;
    assert_eq!(app.check_domain_once_allowed(&buyer, &bought.id).await["verify_status"], "pending");
    servers[1].set_txt("_tempmail.ships.test", &[&bought.txt]).await;
    assert_eq!(app.check_domain_once_allowed(&buyer, &bought.id).await["verify_status"], "verified");
}

#[tokio::test(flavor = "multi_thread")]
async fn fails_a_claim_without_records_after_72_hours() {
    let sale = Sale::start().await;
    sale.app.advance_hours(72);
    sale.app.worker_pass().await;
    let both = [
        sale.app.domain_state(&sale.app.tenant, &sale.seller.id).await,
        sale.app.domain_state(&sale.buyer, &sale.bought.id).await,
    ];
    assert_eq!(both, [state("verified", ""), state("failed", "verification_timed_out")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_mailboxes_mail_and_long_polls_of_the_displaced_tenant() {
    let sale = Sale::start().await;
    let app = &sale.app;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    app.deliver("box@ships.test", "in the mailbox", "").await;
    app.deliver("any@ships.test", "in the domain", "").await;
    let blocked = app.start_long_poll(&app.tenant.live, "/v1/inbox/other@ships.test").await;
    sale.dns.publish(&[&sale.bought]).await;
    assert_eq!(sale.asked().await, handed_over());

    within_deadline("the wait ends", blocked).await.unwrap().assert_v1_error(404, "not_found");
    app.get_mailbox(&mailbox, "/api/messages").await.assert_api_error(401, "invalid_token");
    app.assert_inbox_is_empty_for(&sale.buyer.live, "any@ships.test").await;
    app.assert_inbox_is_empty_for(&sale.buyer.live, "box@ships.test").await;
    // No address of the former owner is in the new one's way.
    app.mailbox(Some(&sale.buyer.pro), "box@ships.test").await;
    app.deliver("box@ships.test", "for the buyer", "").await;

    app.worker_pass().await;
    app.worker_pass().await;
    let left: Vec<String> = sqlx::query_scalar("SELECT subject FROM message WHERE subject NOT LIKE 'probe'")
        .fetch_all(&app.pool)
        .await
        .unwrap();
    assert_eq!(left, ["for the buyer"]);
    assert_eq!(app.count("SELECT count(*) FROM mailbox").await, 1);
    assert_eq!(app.count("SELECT count(*) FROM purge").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_no_earlier_mail_to_a_tenant_that_regains_the_name() {
    let sale = Sale::start().await;
    let app = &sale.app;
    app.deliver("any@ships.test", "before the sale", "").await;
    sale.dns.publish(&[&sale.bought]).await;
    assert_eq!(sale.asked().await, handed_over());
    app.deliver("any@ships.test", "of the buyer", "").await;
    sale.dns.publish(&[&sale.seller]).await;
    let checked = app.check_domain_once_allowed(&app.tenant, &sale.seller.id).await;
    assert_eq!(checked["verify_status"], "verified");
    assert_eq!(app.domain_state(&sale.buyer, &sale.bought.id).await, state("failed", "claimed_by_another"));
    app.assert_inbox_is_empty("any@ships.test").await;
}
