//! Clients that read slowly hold a bounded part of the memory, for a bounded time, and hold up nobody.

use std::time::Duration;

use reqwest::Method;
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{Fleet, smtp};
use tokio::io::AsyncReadExt as _;

/// More than have room in the memory for large answers.
const READERS: usize = 12;
const MIB: f64 = 1_048_576.0;
const MEMORY: &str = "tempmail_answer_memory_bytes{size=\"large\"}";
const SLOW_READERS: &str = "tempmail_http_connections_ended_total{reason=\"slow_reader\"}";

/// An `api` process with a large and a small mail in two inboxes, and the ids of these.
struct Fixture {
    fleet: Fleet,
    large: String,
    small: String,
}

impl Fixture {
    async fn start(min_drain_rate: u64) -> Self {
        let fleet = Fleet::builder().apis(1).ingests(1).workers(0);
        let fleet = fleet.config(|config| config.http.min_drain_rate = min_drain_rate).start().await;
        let text = "All work and no play makes Jack a dull boy.\r\n".repeat(520_000);
        let large = deliver(&fleet, "large@inbox.localhost", &text).await;
        let small = deliver(&fleet, "small@inbox.localhost", "hello\r\n").await;
        Self { fleet, large, small }
    }

    /// Asks for a path of the large mail, and reads nothing of the answer but its head.
    async fn slow_reader(&self, rest: &str) -> tokio::net::TcpStream {
        let mut connection = RawConnection::connect(self.fleet.http(0), Some(4_096)).await.unwrap();
        let request = format!(
            "GET /v1/email/{}{rest} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {}\r\n\r\n",
            self.large, self.fleet.tenant.live
        );
        connection.send(request).await.unwrap();
        connection.into_stream()
    }

    /// Waits until what is held is an answer alone, which has the text twice, without what rendering it takes; how many
    /// bytes that are.
    async fn wait_until_rendered(&self) -> f64 {
        eventually("the answer waits to be read", || async {
            let held = self.fleet.api(0).metric(MEMORY).await;
            (held > 0.0 && held < 60.0 * MIB).then_some(held)
        })
        .await
    }

    async fn small_is_served(&self) {
        for rest in ["", "/raw"] {
            let path = format!("/v1/email/{}{rest}", self.small);
            let answer = self.fleet.request(0, Method::GET, &path).live(&self.fleet.tenant.live).send().await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
    }
}

/// The id of a new mail.
async fn deliver(fleet: &Fleet, address: &str, body: &str) -> String {
    let message = smtp::message("Ada <ada@client.example>", "slow", body);
    let reply = tempmail_tests::send_mail(fleet.smtp(0), "ada@client.example", address, &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let ids = fleet.stored_message_ids(address).await;
    ids[0].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_message_waits_for_no_slow_reader() {
    let fixture = Fixture::start(1).await;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(fixture.slow_reader("").await);
    }
    let api = fixture.fleet.api(0);
    eventually("answers wait to be read", || async { (api.metric(MEMORY).await > 0.0).then_some(()) }).await;
    for _ in 0..20 {
        fixture.small_is_served().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_the_memory_of_slow_readers_of_a_message() {
    let fixture = Fixture::start(1).await;
    let api = fixture.fleet.api(0);
    let before = api.resident_bytes();
    let mut readers = Vec::new();
    for rest in ["", "/raw"] {
        for _ in 0..READERS {
            readers.push(fixture.slow_reader(rest).await);
        }
    }
    // Those that have no place are refused; what the others hold is within the share of the inbox.
    let refused = "tempmail_http_refused_total{code=\"unavailable\",reason=\"answer_memory\"}";
    eventually("some are refused", || async { (api.metric(refused).await > 0.0).then_some(()) }).await;
    eventually("the share of an inbox holds", || async {
        (api.metric(MEMORY).await <= 48.0 * MIB).then_some(())
    })
    .await;
    let grown = api.resident_bytes().saturating_sub(before) >> 20;
    assert!(grown < 300, "{grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_memory_while_an_answer_is_read() {
    let fixture = Fixture::start(1).await;
    let api = fixture.fleet.api(0);
    let mut reader = fixture.slow_reader("").await;
    let whole = fixture.wait_until_rendered().await;
    let mut half = vec![0; 12 << 20];
    reader.read_exact(&mut half).await.unwrap();
    eventually("what was read is released", || async {
        (api.metric(MEMORY).await < whole - 10.0 * MIB).then_some(())
    })
    .await;
    drop(reader);
    eventually("all is released", || async { (api.metric(MEMORY).await < 1.0).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cuts_a_client_that_reads_too_slowly() {
    // Nobody reads so fast.
    let fixture = Fixture::start(1_000_000_000).await;
    let api = fixture.fleet.api(0);
    let mut reading = Vec::new();
    for rest in ["", "/raw"] {
        let mut reader = fixture.slow_reader(rest).await;
        fixture.wait_until_rendered().await;
        // It never stops reading for long.
        reading.push(tokio::spawn(async move {
            let mut some = vec![0; 16 << 10];
            while reader.read(&mut some).await.is_ok_and(|read| read > 0) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }));
    }
    eventually("the connections are cut", || async { (api.metric(SLOW_READERS).await >= 2.0).then_some(()) })
        .await;
    for reader in reading {
        within_deadline("the end of what was sent", reader).await.unwrap();
    }
}
