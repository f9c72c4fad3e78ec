//! A long-poll that waits for a second mail holds the first one, and reads it again before it responds.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{EventStream, Fleet, Response, Tenant};
use tokio::task::JoinHandle;

/// What happens to the first mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstMail {
    Stays,
    MessageDeleted,
    InboxCleared,
    MailboxDeleted,
    DomainLost,
    DomainMailboxLost,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_long_poll_drops_mail_that_became_unreadable() {
    use FirstMail::*;
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).start().await;
    let cases = [Stays, MessageDeleted, InboxCleared, MailboxDeleted, DomainLost, DomainMailboxLost];
    let waits = join_all(cases.map(|case| begin(&fleet, case, cases.len()))).await;
    // A draining process responds with what it has.
    let (_, responses) = tokio::join!(fleet.api(1).terminate(), join_all(waits));
    for (case, response) in cases.iter().zip(responses) {
        let response = response.unwrap();
        let expected = if *case == Stays { 200 } else { 204 };
        assert_eq!(response.status, expected, "{case:?}: {}", response.text());
    }
}

/// Starts a wait for two mails, delivers the first one once all `cases` wait, and applies what happens to it.
async fn begin(fleet: &Fleet, case: FirstMail, cases: usize) -> JoinHandle<Response> {
    let name = format!("{case:?}").to_lowercase();
    let tenant = fleet.another_tenant(&name).await;
    let domain = fleet.custom_domain(&tenant, &format!("{name}.test")).await;
    let address = match case {
        FirstMail::DomainLost | FirstMail::DomainMailboxLost => format!("box@{name}.test"),
        _ => format!("{name}@inbox.localhost"),
    };
    let mailbox = match case {
        FirstMail::DomainLost => None,
        _ => Some(fleet.mailbox(Some(&tenant.pro), &address).await),
    };
    let wait = wait(fleet, &tenant, 2).await;
    eventually("all cases wait", || async {
        (fleet.api(1).metric("tempmail_subscribers").await >= cases as f64).then_some(())
    })
    .await;
    // A stream is notified of the mail together with the wait; another wait might first find it in the store.
    let token = fleet.token(&tenant, TokenKind::Live).await;
    let mut stream = EventStream::open(fleet.request(1, Method::GET, "/v1/sse/user").live(&token)).await;
    fleet.deliver(0, &address, "first").await;
    let received: Value = serde_json::from_str(&stream.next().await.data).unwrap();
    let id = received["id"].as_str().unwrap().to_owned();
    let delete = |method, path: String| fleet.request(0, method, &path).live(&tenant.live).send();
    let status = match case {
        FirstMail::Stays => 204,
        FirstMail::MessageDeleted => delete(Method::DELETE, format!("/v1/email/{id}")).await.status,
        FirstMail::InboxCleared => delete(Method::DELETE, format!("/v1/inbox/{address}")).await.status,
        FirstMail::MailboxDeleted => {
            let jwt = &mailbox.as_ref().unwrap().jwt;
            fleet.request(0, Method::DELETE, "/api/me").bearer(jwt).send().await.status
        }
        FirstMail::DomainLost | FirstMail::DomainMailboxLost => {
            fleet.end_verification(domain).await;
            204
        }
    };
    assert_eq!(status, 204);
    wait
}

/// A wait for so many mails of everything a tenant owns, at the process that will drain.
async fn wait(fleet: &Fleet, tenant: &Tenant, count: usize) -> JoinHandle<Response> {
    let token = fleet.token(tenant, TokenKind::Live).await;
    let path = format!("/v1/me?count={count}");
    tokio::spawn(fleet.request(1, Method::GET, &path).live(&token).send())
}
