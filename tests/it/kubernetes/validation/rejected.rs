//! Invalid specs, each rejected with a message that says what is wrong.

use serde_json::{Value, json};
use tempmail_tests::Cluster;

use super::{api, dry_run, minimal_spec, object, spec_with};

const HOST_NAME: &str = "domain is a host name of at least two labels";
const URL: &str = "url is an https URL with a public host name";
const HOST: &str =
    "url has a host name and no address, no user name or password, no fragment and no white space";
const LOCAL_PART: &str = "address is a local part of letters, digits";
const SECRET_NAME: &str = "a Secret's name has lower-case letters";

async fn assert_rejected(kind: &str, cases: &[(Value, &str)]) {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace(&[]).await;
    let api = api(cluster, kind, namespace.name());
    for (changes, sentence) in cases {
        let answer = dry_run(&api, &object(kind, "wrong", &spec_with(kind, changes))).await;
        let why = answer.expect_err(&format!("{kind} {changes} is accepted"));
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
async fn rejects_domains_that_are_not_host_names() {
    assert_rejected("CustomDomain", &domains()).await;
    assert_rejected("SystemDomain", &domains()).await;
}

#[tokio::test]
async fn rejects_invalid_custom_domains() {
    let cases = [
        (json!({"tenantRef": null}), "spec.tenantRef: Required value"),
        (json!({"tenantRef": {}}), "spec.tenantRef.name: Required value"),
        (json!({"tenantRef": {"name": ""}}), "spec.tenantRef.name"),
        (json!({"tenantRef": {"name": "a".repeat(64)}}), "63"),
        (json!({"adoptionPolicy": "Always"}), r#"supported values: "Never", "IfUnowned""#),
        (json!({"deletionPolicy": "Keep"}), r#"supported values: "Retain", "Delete""#),
    ];
    assert_rejected("CustomDomain", &cases).await;
}

#[tokio::test]
async fn rejects_invalid_system_domains() {
    let cases = [
        (json!({"sortOrder": -1}), "spec.sortOrder"),
        (json!({"sortOrder": 10_001}), "spec.sortOrder"),
        (json!({"default": "yes"}), "must be of type boolean"),
    ];
    assert_rejected("SystemDomain", &cases).await;
}

#[tokio::test]
async fn rejects_invalid_tenants() {
    let cases = [
        (json!({"retentionHours": 5}), "retentionHours is one of 1, 6, 24, 72, 168 and 720"),
        (json!({"retentionHours": 0}), "retentionHours is one of"),
        (json!({"limits": {"mailboxes": -1}}), "spec.limits.mailboxes"),
        (json!({"limits": {"customDomains": -1}}), "spec.limits.customDomains"),
        (json!({"limits": {"webhooks": -1}}), "spec.limits.webhooks"),
        (json!({"limits": {"webhooks": 101}}), "spec.limits.webhooks"),
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
    assert_rejected("Tenant", &cases).await;
}

#[tokio::test]
async fn rejects_invalid_object_names() {
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
        let why = dry_run(&api, &object(kind, &name, &minimal_spec(kind))).await.unwrap_err();
        assert!(why.contains(sentence), "{kind} {name}: {why}");
        dry_run(&api, &object(kind, &name[1..], &minimal_spec(kind))).await.unwrap();
    }
}

#[tokio::test]
async fn rejects_names_of_tenants_that_the_command_line_rejects() {
    let cluster = Cluster::shared().await;
    let tenants = api(cluster, "Tenant", "");
    for name in ["acme.example", "a.b.c"] {
        let why = dry_run(&tenants, &object("Tenant", name, &minimal_spec("Tenant"))).await.unwrap_err();
        assert!(why.contains("a tenant's name has a-z, 0-9 and '-'"), "{name}: {why}");
    }
    for name in ["a", "0", "acme-2", &"x".repeat(63)] {
        let answer = dry_run(&tenants, &object("Tenant", name, &minimal_spec("Tenant"))).await;
        answer.unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

/// The rules see what Go's `net/url` parses: the scheme, the host and whether it is an address. Whether a
/// name has an address that requests may be sent to is checked at each delivery.
#[tokio::test]
async fn rejects_invalid_webhooks() {
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
    assert_rejected("Webhook", &cases).await;
}

#[tokio::test]
async fn rejects_invalid_tokens() {
    let cases = [
        (json!({"type": "pro"}), r#"supported values: "Pro", "Live""#),
        (json!({"type": null}), "spec.type: Required value"),
        (json!({"expiresAt": "tomorrow"}), "spec.expiresAt"),
        (json!({"onSecretLoss": "Ignore"}), r#"supported values: "Rotate", "Stall""#),
        (json!({"secret": {"name": "-a"}}), SECRET_NAME),
    ];
    assert_rejected("ApiToken", &cases).await;
}

#[tokio::test]
async fn rejects_invalid_mailboxes() {
    let of = |address: &str| json!({ "address": address });
    let cases = [
        (of("Sign.Up@mail.example.com"), LOCAL_PART),
        (of("signup"), LOCAL_PART),
        (of("@mail.example.com"), LOCAL_PART),
        (of("a@b@mail.example.com"), LOCAL_PART),
        (of("a+b@mail.example.com"), LOCAL_PART),
        (of(".a@mail.example.com"), LOCAL_PART),
        (of("a.@mail.example.com"), LOCAL_PART),
        (of("a..b@mail.example.com"), "address has no two dots in a row"),
        (of("a@example"), LOCAL_PART),
        (of("a@192.0.2.1"), LOCAL_PART),
        (of(&format!("{}@mail.example.com", "a".repeat(65))), LOCAL_PART),
        (json!({"deletionPolicy": "Orphan"}), r#"supported values: "Retain", "Delete""#),
        (json!({"adoptionPolicy": "Always"}), r#"supported values: "Never", "IfUnowned""#),
    ];
    assert_rejected("Mailbox", &cases).await;
}
