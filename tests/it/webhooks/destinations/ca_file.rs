//! The authorities of `webhooks.ca_file`, which are read again when the file is renewed.

use std::net::Ipv4Addr;

use reqwest::Method;
use tempmail_runtime::file_watch;
use tempmail_tests::receiver::{Identity, ca_file};
use tempmail_tests::tls::TestCertificate;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver};

use crate::webhooks::{create_webhook, first_attempts, list_attempts, outcome};

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

/// As `openssl req -x509` makes them, certificates that sign themselves are marked as those of an authority.
#[tokio::test(flavor = "multi_thread")]
async fn trusts_a_self_signed_certificate_of_the_file_for_its_names_until_it_expires() {
    let listed = [
        (Identity::self_signed_authority(&["localhost"]), None),
        (Identity::self_signed(&["localhost"]), None),
        (Identity::self_signed_authority(&["other.example"]), Some("name_mismatch")),
        (Identity::expired_authority(&["localhost"]), Some("expired")),
    ];
    let unlisted = Identity::self_signed_authority(&["localhost"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("receivers.pem");
    let pem: String = listed.iter().map(|(identity, _)| identity.pem()).collect();
    std::fs::write(&file, pem).unwrap();
    let app = App::builder().receivers().config(|config| config.webhooks.ca_file = Some(file));
    let app = app.start().await;
    let (mut receivers, mut details) = (Vec::new(), Vec::new());
    for (identity, detail) in listed.into_iter().chain([(unlisted, Some("unknown_issuer"))]) {
        receivers.push(Receiver::start_at((Ipv4Addr::LOCALHOST, 0).into(), &identity).await);
        details.push(detail);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    for (detail, attempt) in details.into_iter().zip(first_attempts(&app, &urls).await) {
        let expected = if detail.is_none() { (204, None) } else { (0, Some("tls_failure")) };
        assert_eq!((outcome(&attempt), attempt["detail"].as_str()), (expected, detail), "{attempt}");
    }
}
