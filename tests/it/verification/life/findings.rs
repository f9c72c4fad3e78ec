//! What a check found stays with the domain: what is wrong, and what was seen.

use jiff::SignedDuration;
use tempmail_model::verification::{Finding, RecordFinding};
use tempmail_store::{CustomDomain, Store};
use tempmail_tests::app::Domain;
use tempmail_tests::dns::{NameServer, NameServerFault};
use tempmail_tests::{App, Tenant, TestDns};

use Finding::{Found, Mismatch, Missing, Unknown};

const TXT_NAME: &str = "_tempmail.ships.test";

/// A pending domain with some name servers.
struct Pending {
    app: App,
    dns: TestDns,
    servers: Vec<NameServer>,
    domain: Domain,
    store: Store,
}

impl Pending {
    async fn start(servers: usize) -> Self {
        let dns = TestDns::start().await;
        let servers = dns.domain("ships.test", servers).await;
        let app = App::builder().dns(&dns).start().await;
        let domain = app.domain(&app.tenant, "ships.test").await;
        let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
        Self { app, dns, servers, domain, store }
    }

    async fn row(&self) -> CustomDomain {
        self.row_of(&self.app.tenant, &self.domain).await
    }

    async fn row_of(&self, tenant: &Tenant, domain: &Domain) -> CustomDomain {
        self.store.find_custom_domain(tenant.id, domain.id.parse().unwrap()).await.unwrap().unwrap()
    }

    /// What the owner's check leaves of both records.
    async fn asked(&self) -> (RecordFinding, RecordFinding) {
        self.app.check_domain_once_allowed(&self.app.tenant, &self.domain.id).await;
        of(self.row().await)
    }

    /// What the loop's next check leaves of both records.
    async fn after(&self, time: SignedDuration) -> (RecordFinding, RecordFinding) {
        self.app.clock.advance(time);
        self.app.worker_pass().await;
        of(self.row().await)
    }
}

fn of(row: CustomDomain) -> (RecordFinding, RecordFinding) {
    (row.txt.expect("it was looked at"), row.mx.expect("it was looked at"))
}

fn found(finding: Finding, seen: &[&str]) -> RecordFinding {
    RecordFinding { finding, seen: seen.iter().map(|text| (*text).to_owned()).collect() }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_which_record_is_wrong_and_what_was_seen() {
    let world = Pending::start(1).await;
    let row = world.row().await;
    assert_eq!((row.txt, row.mx), (None, None), "nobody has looked");
    assert_eq!(world.asked().await, (found(Missing, &[]), found(Missing, &[])));

    world.dns.set_txt(TXT_NAME, &["v=spf1 -all", "tempmail-verify=0"]).await;
    world.dns.set_mx("ships.test", &[(20, "b.elsewhere.test"), (10, "A.Elsewhere.Test")]).await;
    let txt = found(Mismatch, &["tempmail-verify=0", "v=spf1 -all"]);
    let mx = found(Mismatch, &["10 a.elsewhere.test", "20 b.elsewhere.test"]);
    assert_eq!(world.asked().await, (txt.clone(), mx.clone()));
    assert_eq!(world.after(SignedDuration::from_mins(5)).await, (txt, mx), "the loop says the same");

    world.dns.set_txt(TXT_NAME, &["beside", &world.domain.txt]).await;
    world.dns.set_mx("ships.test", &[(0, ".")]).await;
    assert_eq!(world.asked().await, (found(Found, &[]), found(Mismatch, &["0 ."])));

    world.dns.publish(&[&world.domain]).await;
    assert_eq!(world.asked().await, (found(Found, &[]), found(Found, &[])));
    let row = world.row().await;
    assert!(row.txt_ok && row.mx_ok && row.verified_at.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_unknown_without_an_answer_and_keeps_the_last_answer() {
    let world = Pending::start(1).await;
    world.dns.set_txt(TXT_NAME, &[&world.domain.txt]).await;
    world.dns.set_mx("ships.test", &[(10, "elsewhere.test")]).await;
    assert_eq!(world.asked().await, (found(Found, &[]), found(Mismatch, &["10 elsewhere.test"])));
    for fault in [NameServerFault::ServFail, NameServerFault::Lame] {
        world.servers[0].set_fault(fault);
        assert_eq!(world.asked().await, (found(Unknown, &[]), found(Unknown, &[])));
        let row = world.row().await;
        assert_eq!((row.txt_ok, row.mx_ok), (true, false));
    }
    world.servers[0].clear_fault();
    assert_eq!(world.asked().await, (found(Found, &[]), found(Mismatch, &["10 elsewhere.test"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_findings_of_the_check_that_failed_the_domain() {
    let world = Pending::start(1).await;
    world.dns.set_txt(TXT_NAME, &["tempmail-verify=0"]).await;
    let at_the_end = world.after(SignedDuration::from_hours(72)).await;
    assert_eq!(at_the_end, (found(Mismatch, &["tempmail-verify=0"]), found(Missing, &[])));
    let row = world.row().await;
    assert_eq!(row.status.as_str(), "failed");
    assert_eq!((row.txt_ok, row.mx_ok), (false, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_an_alias_in_place_of_the_mx_record() {
    let world = Pending::start(1).await;
    let below = world.app.domain(&world.app.tenant, "mail.ships.test").await;
    world.dns.set_cname("mail.ships.test", &below.mx_host).await;
    world.app.check_domain_once_allowed(&world.app.tenant, &below.id).await;
    let row = world.row_of(&world.app.tenant, &below).await;
    assert_eq!(row.mx, Some(found(Mismatch, &[&format!("CNAME {}", below.mx_host)])));
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_only_records_of_servers_that_have_something_else() {
    let world = Pending::start(3).await;
    world.dns.set_txt(TXT_NAME, &[&world.domain.txt, "beside"]).await;
    world.servers[1].set_txt(TXT_NAME, &["old"]).await;
    world.servers[2].clear(TXT_NAME).await;
    assert_eq!(world.asked().await.0, found(Mismatch, &["old"]));
    world.servers[1].set_txt(TXT_NAME, &[&world.domain.txt]).await;
    assert_eq!(world.asked().await.0, found(Missing, &[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_the_displaced_tenant_the_record_of_the_new_one() {
    let world = Pending::start(1).await;
    world.dns.publish(&[&world.domain]).await;
    assert_eq!(world.asked().await.0, found(Found, &[]));
    let buyer = world.app.another_tenant("buyer").await;
    let bought = world.app.domain(&buyer, "ships.test").await;
    world.dns.publish(&[&bought]).await;
    let checked = world.app.check_domain_once_allowed(&buyer, &bought.id).await;
    assert_eq!(checked["verify_status"], "verified");
    assert_eq!(of(world.row().await), (found(Mismatch, &[&bought.txt]), found(Found, &[])));
    assert_eq!(of(world.row_of(&buyer, &bought).await), (found(Found, &[]), found(Found, &[])));
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_hostile_answers_bounded_without_control_characters() {
    let world = Pending::start(1).await;
    let long: Vec<String> = ["a", "b", "c"].iter().map(|letter| letter.repeat(250)).collect();
    let pieces: Vec<&str> = long.iter().map(String::as_str).collect();
    world.servers[0].set_txt_in_pieces(TXT_NAME, &pieces).await;
    let label = "m".repeat(63);
    let host = format!("{label}.{label}.{label}.{}", "m".repeat(61));
    world.dns.set_mx("ships.test", &[(65_535, &host)]).await;
    let (txt, mx) = world.asked().await;
    assert_eq!(txt, found(Mismatch, &[&format!("{}bbbbb", long[0])]));
    assert_eq!(mx, found(Mismatch, &[&format!("65535 {host}")[..255]]));

    world.dns.set_txt(TXT_NAME, &["a\0b", "\x1b[31mred\r\n", "b\u{202e}a", "ä字"]).await;
    let marked = ["\u{fffd}[31mred\u{fffd}\u{fffd}", "a\u{fffd}b", "b\u{fffd}a", "ä字"];
    let mut sorted = marked;
    sorted.sort_unstable();
    assert_eq!(world.asked().await.0, found(Mismatch, &sorted));
}

/// Of 200 records, twice as many as count.
#[tokio::test(flavor = "multi_thread")]
async fn does_not_depend_on_the_order_of_answers() {
    let world = Pending::start(2).await;
    let texts: Vec<String> = (0..200).map(|number| format!("text {number:03}")).collect();
    let hosts: Vec<String> = (0..200).map(|number| format!("h{number:03}.ships.test")).collect();
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut exchanges: Vec<(u16, &str)> = hosts.iter().map(|host| (10, host.as_str())).collect();
    let txt = found(Mismatch, &["text 000", "text 001", "text 002", "text 003", "text 004"]);
    let first = ["000", "001", "002", "003", "004"].map(|number| format!("10 h{number}.ships.test"));
    let mx = found(Mismatch, &first.each_ref().map(String::as_str));
    // Both in one order, one in the other, both in the other.
    for turned in [&[0, 1][..], &[1], &[0]] {
        for server in turned {
            world.servers[*server].set_txt(TXT_NAME, &texts).await;
            world.servers[*server].set_mx("ships.test", &exchanges).await;
        }
        assert_eq!(world.asked().await, (txt.clone(), mx.clone()));
        if turned.len() == 2 {
            texts.reverse();
            exchanges.reverse();
        }
    }
}
