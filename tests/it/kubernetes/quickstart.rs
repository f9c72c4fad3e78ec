//! The example of the README, as a user runs it.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::kubernetes::secret_value;
use tempmail_tests::{Receiver, World};
use uuid::Uuid;

const README: &str = include_str!("../../../README.md");

/// The manifests of the README.
fn example() -> &'static str {
    let (_, after) = README.split_once("## In Kubernetes").expect("the heading is there");
    let (_, block) = after.split_once("```yaml\n").expect("the manifests are there");
    block.split("```").next().expect("they end")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_readme_works() {
    let world = World::shared().await;
    let receiver = Receiver::start().await;
    // Other tests share the cluster and the database: the names are the test's own.
    let own = &Uuid::new_v4().simple().to_string()[..12];
    let (namespace, domain) = (format!("team-{own}"), format!("mail.{own}.example"));
    let manifests = example()
        .replace("team-a", &namespace)
        .replace("name: acme", &format!("name: acme-{own}"))
        .replace("mail.example.com", &domain)
        .replace("https://hooks.example.com/mail", &receiver.url_for_host("LOCALHOST"));
    world.cluster.apply(&manifests).await.expect("the manifests are taken");
    let kubectl = async |arguments: &[&str]| {
        let all = [&["--namespace", &namespace], arguments].concat();
        world.cluster.kubectl(&all).await.expect("kubectl does it")
    };
    let secret = async |name: &str, key: &str| {
        let shown: Value =
            serde_json::from_str(&kubectl(&["get", "secret", name, "-o", "json"]).await).expect("JSON");
        secret_value(&shown, key).expect("the key is there")
    };

    kubectl(&["wait", "customdomain/mail", "--for=condition=Accepted", "--timeout=120s"]).await;
    let shown: Value =
        serde_json::from_str(&kubectl(&["get", "customdomain", "mail", "-o", "json"]).await).expect("JSON");
    let records = &shown["status"]["verification"]["records"];
    let token = records[0]["value"].as_str().and_then(|value| value.strip_prefix("tempmail-verify="));
    let mx_host = records[1]["value"].as_str().expect("a host");
    world.dns.domain(&domain, 1).await;
    world.dns.set_verified(&domain, token.expect("a token"), mx_host).await;
    kubectl(&["wait", "customdomain/mail", "--for=condition=Verified", "--timeout=120s"]).await;
    let rest = ["webhook/ci", "apitoken/ci", "mailbox/signup"];
    kubectl(&[&["wait", "--for=condition=Ready", "--timeout=120s"], &rest[..]].concat()).await;

    let address = format!("signup@{domain}");
    world.app.deliver(&address, "Hello", "").await;
    let live = secret("ci-token", "token").await;
    let path = format!("/v1/inbox/{address}");
    let inbox = world.request(Method::GET, &path).live(&live).send().await.expect(200);
    assert_eq!(inbox["emails"][0]["subject"], "Hello");

    let signing = secret("ci-webhook", "secret").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(&signing));

    let password = secret("signup-mailbox", "password").await;
    assert_eq!(secret("signup-mailbox", "address").await, address);
    let sign_in = json!({"address": address, "password": password});
    world.request(Method::POST, "/api/token").json(&sign_in).send().await.expect(200);

    kubectl(&["delete", "namespace", &namespace, "--wait=false"]).await;
}
