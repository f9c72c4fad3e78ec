//! The authorities of `webhooks.ca_file`, which are read again when the file is renewed.

use reqwest::Method;
use tempmail_runtime::file_watch;
use tempmail_tests::receiver::ca_file;
use tempmail_tests::tls::TestCertificate;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use crate::webhooks::{create_webhook, list_attempts, outcome};

#[tokio::test]
async fn trusts_the_authorities_of_a_renewed_file() {
    let other = TestCertificate::generate();
    let file = other.cert_path();
    let app = App::builder().receivers().config(|config| config.webhooks.ca_file = Some(file.clone()));
    let app = app.start().await;
    let receiver = Receiver::start().await;
    app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let first_outcome = || async {
        let webhook = create_webhook(&app, &receiver.url()).await;
        app.deliver("box@inbox.localhost", "Hello", "").await;
        let attempt = eventually("an attempt", || async { list_attempts(&app, &webhook).await.pop() }).await;
        // A tenant may have one.
        let path = format!("/pro/api/webhooks/{}", webhook.id);
        app.request(Method::DELETE, &path).bearer(&app.tenant.pro).send().await.expect(204);
        outcome(&attempt).0
    };
    assert_eq!(first_outcome().await, 0);
    std::fs::copy(ca_file(), &file).unwrap();
    app.jump_until("the renewed authority is trusted", file_watch::PERIOD, || async {
        (first_outcome().await == 204).then_some(())
    })
    .await;
}
