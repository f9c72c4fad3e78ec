//! Postgres on a disk that is full for a while.

use rand::Rng as _;
use tempmail_tests::postgres::DedicatedPostgres;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Reply, send_mail, smtp};

const ADDRESS: &str = "full@inbox.localhost";
/// Size of the disk in MiB: enough for an empty database and the log of its writes.
const DISK: u32 = 200;
/// Mails after which the disk must be full, with [`BODY`] bytes each.
const MAILS: usize = 500;
const BODY: usize = 200 << 10;

async fn send(fleet: &Fleet, number: usize) -> Reply {
    let mut bytes = vec![0; BODY / 2];
    // What is random can't be compressed.
    rand::rng().fill_bytes(&mut bytes);
    let body: Vec<String> = bytes.chunks(32).map(|line| format!("{}\r\n", hex(line))).collect();
    let message = smtp::message("a@client.example", &number.to_string(), &body.concat());
    send_mail(fleet.smtp(0), "a@client.example", ADDRESS, &message).await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_mail_while_the_disk_is_full_and_loses_none() {
    let postgres = DedicatedPostgres::start_on_disk(DISK).await;
    let fleet =
        Fleet::builder().apis(1).ingests(1).workers(0).database(postgres.database().await).start().await;
    assert_eq!(send(&fleet, 0).await.code, 250);
    let mut accepted = vec!["0".to_owned()];

    postgres.fill_disk();
    for number in 1.. {
        assert!(number < MAILS, "the disk is not full");
        let reply = send(&fleet, number).await;
        if reply.code != 250 {
            assert_eq!(reply.status(), "451 4.3.0");
            break;
        }
        accepted.push(number.to_string());
    }
    postgres.free_disk();
    // Where the log of writes did not fit, the server has ended.
    postgres.ensure_started().await;
    let number = MAILS;
    eventually("mail is accepted again", || async { (send(&fleet, number).await.code == 250).then_some(()) })
        .await;
    accepted.push(number.to_string());
    let stored: Vec<String> =
        sqlx::query_scalar("SELECT subject FROM message WHERE address = $1 ORDER BY seq")
            .bind(ADDRESS)
            .fetch_all(&fleet.pool)
            .await
            .unwrap();
    assert_eq!(stored, accepted);
}
