//! An address that goes from one owner to the next, while the former's readers are there: they
//! get nothing of what is the next one's, by whatever way they read.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::percent;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, DnsWorld, EventStream, Tenant};
use tokio::task::JoinHandle;

/// A client that reads on and on, and goes on where it stopped, until it is refused for good.
fn reader(app: &App, live: &str, path: &str) -> JoinHandle<Vec<String>> {
    let is_stream = path.starts_with("/v1/sse");
    let mut subjects = Vec::new();
    let make = {
        let (http, live, path) = (app.http(), live.to_owned(), path.to_owned());
        let client = tempmail_tests::http::client();
        move |since: &str| {
            let joint = if path.contains('?') { '&' } else { '?' };
            let since = if since.is_empty() { String::new() } else { format!("{joint}since={since}") };
            let url = format!("http://{http}{path}{since}");
            tempmail_tests::http::Request::new(&client, Method::GET, &url).live(&live)
        }
    };
    tokio::spawn(async move {
        let mut since = String::new();
        loop {
            if is_stream {
                let mut stream = match EventStream::try_open(make(&since)).await.unwrap() {
                    Ok(stream) => stream,
                    Err(answer) if answer.status == 404 => return subjects,
                    Err(answer) => panic!("{answer:?}"),
                };
                while let Some(block) = stream.try_block().await {
                    stream.last_event_id().clone_into(&mut since);
                    let data = block.data.map(|data| serde_json::from_str::<Value>(&data).unwrap());
                    subjects.extend(data.map(|email| email["subject"].as_str().unwrap().to_owned()));
                }
                continue;
            }
            let answer = make(&since).send().await;
            match answer.status {
                200 => {
                    let body = answer.json();
                    body["next_since"].as_str().unwrap().clone_into(&mut since);
                    let emails = body["emails"].as_array().unwrap().iter().rev();
                    subjects.extend(emails.map(|email| email["subject"].as_str().unwrap().to_owned()));
                }
                204 => answer.header("x-next-since").clone_into(&mut since),
                404 => return subjects,
                _ => panic!("{answer:?}"),
            }
        }
    })
}

/// All ways to read an address, each with a token of its own.
async fn readers(app: &App, tenant: &Tenant, paths: &[String]) -> Vec<(String, JoinHandle<Vec<String>>)> {
    let mut readers = Vec::new();
    for path in paths {
        let token = app.token(tenant, TokenKind::Live).await;
        readers.push((path.clone(), reader(app, &token, path)));
    }
    readers
}

fn of_address(address: &str) -> [String; 2] {
    [format!("/v1/inbox/{}", percent(address)), format!("/v1/sse/addr?address={}", percent(address))]
}

/// Once all of them were refused: what each of them met.
async fn met(readers: Vec<(String, JoinHandle<Vec<String>>)>) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for (path, reader) in readers {
        let what = format!("{path} is refused");
        all.push((path, tempmail_tests::wait::in_time(&what, reader).await.unwrap()));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_inbox_that_becomes_a_mailbox_and_then_anothers() {
    let app = App::start().await;
    let (second, third) = (app.another_tenant("second").await, app.another_tenant("third").await);
    let address = "relay@inbox.localhost";
    let of_all = readers(&app, &app.tenant, &of_address(address)).await;
    app.deliver(address, "of all", "").await;
    eventually("everybody met it", || async {
        // Something in the ring, and readers that wait again.
        (app.emails(address).await.len() == 1).then_some(())
    })
    .await;

    let mailbox = app.mailbox(Some(&second.pro), address).await;
    app.deliver(address, "of the second", "").await;
    for (path, subjects) in met(of_all).await {
        assert!(subjects.iter().all(|subject| subject == "of all"), "{path}: {subjects:?}");
    }
    let mut paths = of_address(address).to_vec();
    paths.extend(of_address("relay+tag@inbox.localhost"));
    let of_second = readers(&app, &second, &paths).await;
    let mut owned = EventStream::open(
        app.request(Method::GET, "/v1/sse/user").live(&app.token(&second, TokenKind::Live).await),
    )
    .await;
    owned.block().await;
    app.deliver("relay+tag@inbox.localhost", "of the second, tagged", "").await;
    assert!(owned.next().await.data.contains("of the second, tagged"));

    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await.status, 204);
    // The address is held for 31 days, and nothing of it is anybody's until then.
    app.clock.advance(SignedDuration::from_hours(32 * 24));
    app.worker_pass().await;
    app.mailbox(Some(&third.pro), address).await;
    for subject in ["of the third", "of the third, again"] {
        app.deliver(address, subject, "").await;
        app.deliver("relay+tag@inbox.localhost", subject, "").await;
    }
    for (path, subjects) in met(of_second).await {
        assert!(subjects.iter().all(|subject| subject.contains("second")), "{path}: {subjects:?}");
    }
    app.mailbox(Some(&second.pro), "own@inbox.localhost").await;
    app.deliver("own@inbox.localhost", "to the second's own", "").await;
    assert!(owned.next().await.data.contains("to the second's own"), "nothing of the third came before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_goes_to_another_tenant() {
    let dns = DnsWorld::start().await;
    let server = dns.domain("ships.test", 1).await.remove(0);
    let app = App::builder().dns(&dns).start().await;
    let buyer = app.another_tenant("buyer").await;
    let sold = app.domain(&app.tenant, "ships.test").await;
    dns.publish(&[&sold]).await;
    assert_eq!(app.checked_domain(&app.tenant, &sold.id).await["verify_status"], "verified");
    app.mailbox(Some(&app.tenant.pro), "box@ships.test").await;
    let mut paths = vec!["/v1/domain/ships.test".to_owned()];
    for address in ["any@ships.test", "box@ships.test", "box+tag@ships.test"] {
        paths.extend(of_address(address));
    }
    let of_seller = readers(&app, &app.tenant, &paths).await;
    let mut owned = EventStream::open(app.request(Method::GET, "/v1/sse/user").live(&app.tenant.live)).await;
    owned.block().await;
    for address in ["any@ships.test", "box@ships.test", "box+tag@ships.test"] {
        app.deliver(address, "of the seller", "").await;
        assert!(owned.next().await.data.contains("of the seller"));
    }

    let bought = app.domain(&buyer, "ships.test").await;
    dns.publish(&[&bought]).await;
    assert_eq!(app.checked_domain(&buyer, &bought.id).await["verify_status"], "verified");
    app.mailbox(Some(&buyer.pro), "box@ships.test").await;
    let of_buyer = app.token(&buyer, TokenKind::Live).await;
    for address in ["any@ships.test", "box@ships.test", "box+tag@ships.test"] {
        app.deliver(address, "of the buyer", "").await;
        let emails = app.emails_as(&of_buyer, address).await;
        assert!(emails.iter().all(|email| email["subject"] == "of the buyer"), "{emails:?}");
    }
    for (path, subjects) in met(of_seller).await {
        assert!(!subjects.is_empty() || path.contains("domain"), "{path} met nothing at all");
        assert!(subjects.iter().all(|subject| subject == "of the seller"), "{path}: {subjects:?}");
    }
    app.mailbox(Some(&app.tenant.pro), "own@inbox.localhost").await;
    app.deliver("own@inbox.localhost", "to the seller's own", "").await;
    assert!(owned.next().await.data.contains("to the seller's own"), "nothing of the buyer came before");
    drop(server);
}
