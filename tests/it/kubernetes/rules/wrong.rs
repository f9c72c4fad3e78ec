//! Wrong specs, each refused with a sentence that says what is wrong.

use serde_json::{Value, json};
use tempmail_tests::Cluster;

use super::{api, changed, judged, least, object};

const HOST_NAME: &str = "domain is a host name of at least two labels";
const URL: &str = "url is an https URL with a public host name";
const HOST: &str =
    "url has a host name and no address, no user name or password, no fragment and no white space";
const LOCAL_PART: &str = "address is a local part of letters, digits";
const SECRET_NAME: &str = "a Secret's name has lower-case letters";

async fn all_refused(kind: &str, cases: &[(Value, &str)]) {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let api = api(cluster, kind, namespace.name());
    for (changes, sentence) in cases {
        let answer = judged(&api, &object(kind, "wrong", &changed(kind, changes))).await;
        let why = answer.expect_err(&format!("{kind} {changes} is taken"));
        assert!(why.contains(sentence), "{kind} {changes}: {why}");
    }
}

fn domains() -> Vec<(Value, &'static str)> {
    let label = "a".repeat(63);
    let too_long = format!("{label}.{label}.{label}.{}.example", "b".repeat(44));
    assert_eq!(too_long.len(), 244);
    let of = |domain: &str| json!({ "domain": domain });
    vec![
        (of("Mail.example.com"), HOST_NAME),
        (of("example"), HOST_NAME),
        (of("mail.example.com."), HOST_NAME),
        (of(".example.com"), HOST_NAME),
        (of("mail..example.com"), HOST_NAME),
        (of("192.0.2.1"), HOST_NAME),
        (of("2001:db8::1"), HOST_NAME),
        (of("bücher.example"), HOST_NAME),
        (of("*.example.com"), HOST_NAME),
        (of("-a.example.com"), HOST_NAME),
        (of("a-.example.com"), HOST_NAME),
        (of("a_b.example.com"), HOST_NAME),
        (of("mail.example.com/x"), HOST_NAME),
        (of(&format!("{}.example", "a".repeat(64))), HOST_NAME),
        (of(&too_long), "243"),
        (of(""), "domain"),
        (json!({"domain": null}), "spec.domain: Required value"),
        (json!({"domain": 7}), "must be of type string"),
    ]
}

#[tokio::test]
async fn domains_that_are_no_host_names() {
    all_refused("CustomDomain", &domains()).await;
    all_refused("SystemDomain", &domains()).await;
}

#[tokio::test]
async fn custom_domains() {
    let cases = [
        (json!({"tenantRef": null}), "spec.tenantRef: Required value"),
        (json!({"tenantRef": {}}), "spec.tenantRef.name: Required value"),
        (json!({"tenantRef": {"name": ""}}), "spec.tenantRef.name"),
        (json!({"tenantRef": {"name": "a".repeat(64)}}), "63"),
        (json!({"adoptionPolicy": "Always"}), r#"supported values: "Never", "IfUnowned""#),
        (json!({"deletionPolicy": "Keep"}), r#"supported values: "Retain", "Delete""#),
    ];
    all_refused("CustomDomain", &cases).await;
}

#[tokio::test]
async fn system_domains() {
    let cases = [
        (json!({"sortOrder": -1}), "spec.sortOrder"),
        (json!({"sortOrder": 10_001}), "spec.sortOrder"),
        (json!({"default": "yes"}), "must be of type boolean"),
    ];
    all_refused("SystemDomain", &cases).await;
}

#[tokio::test]
async fn tenants() {
    let cases = [
        (json!({"retentionHours": 5}), "retentionHours is one of 1, 6, 24, 72, 168 and 720"),
        (json!({"retentionHours": 0}), "retentionHours is one of"),
        (json!({"limits": {"mailboxes": -1}}), "spec.limits.mailboxes"),
        (json!({"limits": {"customDomains": -1}}), "spec.limits.customDomains"),
        (json!({"limits": {"webhooks": -1}}), "spec.limits.webhooks"),
        (json!({"limits": {"tokens": -1}}), "spec.limits.tokens"),
        (json!({"limits": {"mailboxBytes": 0}}), "spec.limits.mailboxBytes"),
        (json!({"limits": {"mailboxes": 1_000_001}}), "spec.limits.mailboxes"),
        (json!({"deletionPolicy": "Orphan"}), r#"supported values: "Retain", "Delete""#),
        (
            json!({"allowedNamespaces": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            r#"supported values: "In", "NotIn", "Exists", "DoesNotExist""#,
        ),
        (json!({"allowedNamespaces": ["shop"]}), "must be of type object"),
    ];
    all_refused("Tenant", &cases).await;
}

#[tokio::test]
async fn names_of_objects() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let cases = [
        ("Tenant", "platform".to_owned(), "the tenant 'platform' is built in"),
        ("Tenant", "a".repeat(64), "a tenant's name has at most 63 characters"),
        ("Webhook", "a".repeat(241), "the object's name has at most 240 characters"),
        ("ApiToken", "a".repeat(241), "the object's name has at most 240 characters"),
        ("Mailbox", "a".repeat(241), "the object's name has at most 240 characters"),
    ];
    for (kind, name, sentence) in cases {
        let api = api(cluster, kind, namespace.name());
        let why = judged(&api, &object(kind, &name, &least(kind))).await.unwrap_err();
        assert!(why.contains(sentence), "{kind} {name}: {why}");
        judged(&api, &object(kind, &name[1..], &least(kind))).await.unwrap();
    }
}

/// The rules see what Go's `net/url` reads: the scheme, the host and whether it is an address. Whether
/// a name leads to an address that may be sent to shows only when it is sent to.
#[tokio::test]
async fn webhooks() {
    let of = |url: &str| json!({ "url": url });
    let cases = [
        (of("http://hooks.example.com/"), URL),
        (of("ftp://hooks.example.com/"), URL),
        (of("hooks.example.com/mail"), URL),
        (of("/mail"), URL),
        (of("https://localhost/mail"), URL),
        (of("https://localhost:8443/mail"), URL),
        (of("https://"), HOST),
        (of("https:///mail"), HOST),
        (of("https://:8443/mail"), HOST),
        (of("https://192.0.2.1/mail"), HOST),
        (of("https://[2001:db8::1]/mail"), HOST),
        (of("https://hooks.example.com/a b"), HOST),
        (of("https://user@hooks.example.com/"), HOST),
        (of("https://user:password@hooks.example.com/"), HOST),
        (of("https://hooks.example.com/mail#part"), HOST),
        (of(&format!("https://hooks.example.com/{}", "a".repeat(2048))), "2048"),
        (of(""), "spec.url"),
        (json!({"events": []}), "spec.events"),
        (json!({"events": ["email.sent"]}), r#"supported values: "email.received""#),
        (json!({"secret": {"name": "No_Name"}}), SECRET_NAME),
        (json!({"secret": {}}), "spec.secret.name: Required value"),
    ];
    all_refused("Webhook", &cases).await;
}

#[tokio::test]
async fn tokens() {
    let cases = [
        (json!({"type": "pro"}), r#"supported values: "Pro", "Live""#),
        (json!({"type": null}), "spec.type: Required value"),
        (json!({"expiresAt": "tomorrow"}), "spec.expiresAt"),
        (json!({"onSecretLoss": "Ignore"}), r#"supported values: "Rotate", "Stall""#),
        (json!({"secret": {"name": "-a"}}), SECRET_NAME),
    ];
    all_refused("ApiToken", &cases).await;
}

#[tokio::test]
async fn mailboxes() {
    let of = |address: &str| json!({ "address": address });
    let cases = [
        (of("Sign.Up@mail.example.com"), LOCAL_PART),
        (of("signup"), LOCAL_PART),
        (of("@mail.example.com"), LOCAL_PART),
        (of("a@b@mail.example.com"), LOCAL_PART),
        (of("a+b@mail.example.com"), LOCAL_PART),
        (of(".a@mail.example.com"), LOCAL_PART),
        (of("a@example"), LOCAL_PART),
        (of("a@192.0.2.1"), LOCAL_PART),
        (of(&format!("{}@mail.example.com", "a".repeat(65))), LOCAL_PART),
        (json!({"deletionPolicy": "Orphan"}), r#"supported values: "Retain", "Delete""#),
        (json!({"adoptionPolicy": "Always"}), r#"supported values: "Never", "IfUnowned""#),
    ];
    all_refused("Mailbox", &cases).await;
}
