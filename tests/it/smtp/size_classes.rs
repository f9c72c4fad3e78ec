//! Mails of every size at once.

use futures_util::future::join_all;
use tempmail_tests::{App, SmtpClient, send_mail, smtp};

/// Text of so many octets that compression does not make small.
fn noise(octets: usize) -> String {
    let mut text = String::with_capacity(octets + 34);
    while text.len() < octets {
        text.push_str(&uuid::Uuid::new_v4().simple().to_string());
        text.push_str("\r\n");
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_small_medium_large_and_bulky_mail_that_arrives_at_once() {
    let app = App::start().await;
    let sizes = [0, 40_000, 200_000, 1_000_000, 4_000_000];
    let mails = sizes.iter().enumerate().flat_map(|(class, octets)| (0..4).map(move |i| (class, i, *octets)));
    let sends = mails.map(|(class, i, octets)| {
        let app = &app;
        async move {
            let message = smtp::message("a@client.example", "sized", &noise(octets));
            send_mail(app.smtp(), "a@client.example", &format!("s{class}-{i}@inbox.localhost"), &message)
                .await
        }
    });
    let recipients: Vec<String> = (0..50).map(|i| format!("many{i}@inbox.localhost")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let to_many = async {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        let message = smtp::message("a@client.example", "to many", "");
        client.transact("a@client.example", &recipients, &message).await
    };
    let (replies, to_many) = tokio::join!(join_all(sends), to_many);
    assert!(replies.iter().chain([&to_many]).all(|reply| reply.code == 250), "{replies:?} {to_many:?}");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 20 + 50);
}
