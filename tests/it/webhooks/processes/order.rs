//! The order of events, and delivery without Redis.

use tempmail_tests::{Fleet, RedisProxy, RedisServer, SmtpClient, smtp};
use uuid::Uuid;

use super::{MailboxWebhook, fleet_with_webhook, wait_until_delivered};

/// Requests to a webhook in flight at most: by so many places one may overtake another.
const IN_FLIGHT_MAX: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn sends_events_from_before_the_worker_started_in_the_order_of_the_stream() {
    let (fleet, webhook) = fleet_with_webhook(1).await;
    let status = fleet.worker(0).terminate().await.status;
    assert!(status.success(), "{status:?}");
    let mut client = SmtpClient::connect_with_ehlo(fleet.smtp(0)).await;
    for nth in 0..100 {
        let message = smtp::message("Ada <ada@client.example>", &format!("mail {nth}"), "");
        assert_eq!(client.transact("ada@client.example", &[&webhook.address], &message).await.code, 250);
    }
    assert_eq!(webhook.receiver.request_count(), 0);
    fleet.worker(0).restart().await;
    let stored = fleet.stored_message_ids(&webhook.address).await;
    let requests = webhook.receiver.wait_for_requests(stored.len()).await;
    wait_until_delivered(&fleet).await;
    let sent: Vec<Uuid> = requests
        .iter()
        .map(|request| request.event()["data"]["email_id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!((sent[0], sent.len()), (stored[0], 100));
    for (position, message) in stored.iter().enumerate() {
        let sent = sent.iter().position(|sent| sent == message).expect("each message is sent");
        assert!(sent + IN_FLIGHT_MAX > position, "message {position} was sent as number {sent}");
    }
    assert_eq!(webhook.receiver.request_count(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_while_redis_is_unavailable() {
    let mut redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let fleet = Fleet::builder().receivers().apis(1).ingests(1).redis(&proxy.url()).start().await;
    let webhook = MailboxWebhook::create(&fleet, &fleet.tenant, "box@inbox.localhost").await;
    fleet.deliver(0, &webhook.address, "with Redis").await;
    webhook.receiver.wait_for_requests(1).await;
    redis.stop();
    for nth in 2..5 {
        fleet.deliver(0, &webhook.address, "without Redis").await;
        webhook.receiver.wait_for_requests(nth).await;
    }
    redis.start();
    fleet.deliver(0, &webhook.address, "with Redis again").await;
    webhook.receiver.wait_for_requests(5).await;
    wait_until_delivered(&fleet).await;
    assert_eq!(webhook.receiver.request_count(), 5);
}
