//! Nothing fails while it is told: in the order of the stream, whoever was away when it came.

use tempmail_tests::{Fleet, RedisProxy, RedisServer, SmtpClient, smtp};
use uuid::Uuid;

use super::{Line, all_is_told, with_line};

/// Requests side by side at most: so far one may be before another that began earlier.
const SIDE_BY_SIDE: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn what_came_while_no_worker_ran_is_told_in_the_order_of_the_stream() {
    let (fleet, line) = with_line(1).await;
    let status = fleet.worker(0).terminate().await.status;
    assert!(status.success(), "{status:?}");
    let mut client = SmtpClient::connect_with_ehlo(fleet.smtp(0)).await;
    for nth in 0..100 {
        let message = smtp::message("Ada <ada@client.example>", &format!("mail {nth}"), "");
        assert_eq!(client.transact("ada@client.example", &[&line.address], &message).await.code, 250);
    }
    assert_eq!(line.receiver.request_count(), 0);
    fleet.worker(0).restart().await;
    let stored = fleet.stored_message_ids(&line.address).await;
    let requests = line.receiver.wait_for_requests(stored.len()).await;
    all_is_told(&fleet).await;
    let told: Vec<Uuid> = requests
        .iter()
        .map(|request| request.event()["data"]["email_id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!((told[0], told.len()), (stored[0], 100));
    for (place, message) in stored.iter().enumerate() {
        let told = told.iter().position(|told| told == message).expect("each is told");
        assert!(told + SIDE_BY_SIDE > place, "number {place} was told as number {told}");
    }
    assert_eq!(line.receiver.request_count(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_what_comes_is_found() {
    let mut redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).redis(&proxy.url()).start().await;
    let line = Line::of(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    fleet.deliver(0, &line.address, "with").await;
    line.receiver.wait_for_requests(1).await;
    redis.stop();
    for nth in 2..5 {
        fleet.deliver(0, &line.address, "without").await;
        line.receiver.wait_for_requests(nth).await;
    }
    redis.start();
    fleet.deliver(0, &line.address, "again").await;
    line.receiver.wait_for_requests(5).await;
    all_is_told(&fleet).await;
    assert_eq!(line.receiver.request_count(), 5);
}
