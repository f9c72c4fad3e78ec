//! The example of the README.

use reqwest::Method;
use tempmail_tests::kubernetes::{Objects, SharedInstallation, unique_name, verification_records};
use tempmail_tests::{Installation, Receiver};

const README: &str = include_str!("../../../README.md");

/// The manifests of the README.
fn example() -> &'static str {
    let (_, after) = README.split_once("## In Kubernetes").expect("the heading is there");
    let (_, block) = after.split_once("```yaml\n").expect("the manifests are there");
    block.split("```").next().expect("they end")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_readme_receives_mail_and_webhooks() {
    let installation = Installation::shared().await;
    let receiver = Receiver::start().await;
    // Other tests use the same cluster and database.
    let namespace = unique_name("team");
    let domain = format!("mail.{namespace}.example");
    let manifests = example()
        .replace("team-a", &namespace)
        .replace("name: acme", &format!("name: acme-{namespace}"))
        .replace("mail.example.com", &domain)
        .replace("https://hooks.example.com/mail", &receiver.url_for_host("LOCALHOST"));
    installation.cluster.apply(&manifests).await.expect("the API server accepts the manifests");
    let objects = installation.cluster.objects(&namespace);
    publish_records(installation, &objects, &domain).await;
    for object in ["webhook/ci", "apitoken/ci", "mailbox/signup"] {
        objects.wait_for_condition(object, "Ready").await;
    }

    let address = format!("signup@{domain}");
    installation.app.deliver(&address, "Hello", "").await;
    let live = objects.secret_value("ci-token", "token").await;
    let path = format!("/v1/inbox/{address}");
    let inbox = installation.request(Method::GET, &path).live(&live).send().await.expect(200);
    assert_eq!(inbox["emails"][0]["subject"], "Hello");

    let secret = objects.secret_value("ci-webhook", "secret").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(&secret));

    assert_eq!(objects.secret_value("signup-mailbox", "address").await, address);
    let password = objects.secret_value("signup-mailbox", "password").await;
    installation.sign_in(&address, &password).await.expect(200);

    objects.start_deletion(&format!("namespace/{namespace}")).await;
}

/// Publishes the records of the example's domain, and waits until they are found.
async fn publish_records(installation: &SharedInstallation, objects: &Objects, domain: &str) {
    let shown = objects.wait_for_condition("customdomain/mail", "Accepted").await;
    let (token, mx_host) = verification_records(&shown);
    installation.dns.domain(domain, 1).await;
    installation.dns.set_verified(domain, &token, &mx_host).await;
    objects.wait_for_condition("customdomain/mail", "Verified").await;
}
