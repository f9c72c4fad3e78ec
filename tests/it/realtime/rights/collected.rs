//! A long-poll that waits for a second mail holds the first one: at its end it is looked at again.

use futures_util::future::join_all;
use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Answer, Fleet, Tenant};
use tokio::task::JoinHandle;

/// What becomes of the first mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    MessageDeleted,
    InboxCleared,
    MailboxDeleted,
    DomainLost,
    DomainMailboxLost,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_nobodys_to_read_any_more_is_not_answered_with() {
    use Fate::*;
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).start().await;
    let fates = [Stays, MessageDeleted, InboxCleared, MailboxDeleted, DomainLost, DomainMailboxLost];
    let waits = join_all(fates.map(|fate| begin(&fleet, fate))).await;
    // A draining process answers with what there is.
    let (_, answers) = tokio::join!(fleet.api(1).terminate(), join_all(waits));
    for (fate, answer) in fates.iter().zip(answers) {
        let answer = answer.unwrap();
        let expected = if *fate == Stays { 200 } else { 204 };
        assert_eq!(answer.status, expected, "{fate:?}: {}", answer.text());
    }
}

/// A wait for two mails that has met one, of which that has become what is to become of it.
async fn begin(fleet: &Fleet, fate: Fate) -> JoinHandle<Answer> {
    let name = format!("{fate:?}").to_lowercase();
    let tenant = fleet.another_tenant(&name).await;
    let domain = fleet.custom_domain(&tenant, &format!("{name}.test")).await;
    let address = match fate {
        Fate::DomainLost | Fate::DomainMailboxLost => format!("box@{name}.test"),
        _ => format!("{name}@inbox.localhost"),
    };
    let mailbox = match fate {
        Fate::DomainLost => None,
        _ => Some(fleet.mailbox(Some(&tenant.pro), &address).await),
    };
    let wait = wait(fleet, &tenant, 2).await;
    // By the time that this one is answered, the other one has met the mail, too.
    let probe = self::wait(fleet, &tenant, 1).await;
    fleet.deliver(0, &address, "first").await;
    let met = within_deadline("a wait for one mail", probe).await.unwrap().expect(200);
    let id = met["emails"][0]["id"].as_str().unwrap().to_owned();
    let gone = |method, path: String| fleet.request(0, method, &path).live(&tenant.live).send();
    let status = match fate {
        Fate::Stays => 204,
        Fate::MessageDeleted => gone(Method::DELETE, format!("/v1/email/{id}")).await.status,
        Fate::InboxCleared => gone(Method::DELETE, format!("/v1/inbox/{address}")).await.status,
        Fate::MailboxDeleted => {
            let jwt = &mailbox.as_ref().unwrap().jwt;
            fleet.request(0, Method::DELETE, "/api/me").bearer(jwt).send().await.status
        }
        Fate::DomainLost | Fate::DomainMailboxLost => {
            fleet.end_verification(domain).await;
            204
        }
    };
    assert_eq!(status, 204);
    wait
}

/// A wait for so many mails of all that a tenant owns, at the process that is to drain.
async fn wait(fleet: &Fleet, tenant: &Tenant, count: usize) -> JoinHandle<Answer> {
    let token = fleet.token(tenant, TokenKind::Live).await;
    let path = format!("/v1/me?count={count}");
    tokio::spawn(fleet.request(1, Method::GET, &path).live(&token).send())
}
