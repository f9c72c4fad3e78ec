//! Who may do what, asked of the API server: everything that is not said here is refused.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use tempmail_tests::Cluster;
use tempmail_tests::wait::eventually;

use super::Roles;

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const READ: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
const OWN: &str = "tempmail.dev";
/// What platform teams write.
const PLATFORM_KINDS: [&str; 2] = ["tenants", "systemdomains"];
/// What tenant teams write.
const TEAM_KINDS: [&str; 4] = ["customdomains", "webhooks", "apitokens", "mailboxes"];
/// What is not ours, and would be of use to whoever got it.
const OTHERS: [(&str, &str); 17] = [
    ("", "secrets"),
    ("", "configmaps"),
    ("", "pods"),
    ("", "pods/exec"),
    ("", "nodes"),
    ("", "namespaces"),
    ("", "events"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("events.k8s.io", "events"),
    ("coordination.k8s.io", "leases"),
    ("apps", "deployments"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "rolebindings"),
];

type Rights = BTreeSet<String>;

/// `verb resource.group`, for each verb.
fn rights<'a>(group: &str, resources: impl IntoIterator<Item = &'a str>, verbs: &[&str]) -> Rights {
    let name = |resource: &str| format!("{resource}.{group}").trim_end_matches('.').to_owned();
    resources
        .into_iter()
        .flat_map(|resource| verbs.iter().map(move |verb| format!("{verb} {}", name(resource))))
        .collect()
}

fn union(all: impl IntoIterator<Item = Rights>) -> Rights {
    all.into_iter().flatten().collect()
}

fn everything() -> Vec<(String, String)> {
    let kinds = PLATFORM_KINDS.into_iter().chain(TEAM_KINDS);
    let own = kinds.flat_map(|kind| {
        ["", "/status", "/finalizers"].map(|part| (OWN.to_owned(), format!("{kind}{part}")))
    });
    own.chain(OTHERS.map(|(group, resource)| (group.to_owned(), resource.to_owned()))).collect()
}

/// What somebody may do in a namespace (`None`: in all of them), with any object or the one of a `name`.
async fn may(
    cluster: &Cluster,
    (user, groups): &(String, Vec<String>),
    namespace: Option<&str>,
    name: Option<&str>,
) -> Rights {
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client());
    let mut granted = Rights::new();
    for (group, resource) in everything() {
        let (kind, part) =
            resource.split_once('/').map_or((&*resource, None), |(kind, part)| (kind, Some(part)));
        for verb in VERBS {
            let attributes = ResourceAttributes {
                group: Some(group.clone()),
                resource: Some(kind.to_owned()),
                subresource: part.map(str::to_owned),
                verb: Some(verb.to_owned()),
                namespace: namespace.map(str::to_owned),
                name: name.map(str::to_owned),
                ..ResourceAttributes::default()
            };
            let spec = SubjectAccessReviewSpec {
                user: Some(user.clone()),
                groups: Some(groups.clone()),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            let review = reviews.create(&PostParams::default(), &review).await.expect("it is answered");
            if review.status.expect("there is an answer").allowed {
                granted.append(&mut rights(&group, [&*resource], &[verb]));
            }
        }
    }
    granted
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_do_this_and_nothing_else() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = Roles::install(cluster, home.name()).await;
    let kinds = || PLATFORM_KINDS.into_iter().chain(TEAM_KINDS);
    let status: Vec<String> = kinds().map(|kind| format!("{kind}/status")).collect();
    let everywhere = union([
        rights(OWN, kinds(), &["get", "list", "watch", "patch"]),
        rights(OWN, status.iter().map(String::as_str), &["patch"]),
        rights("", ["namespaces"], READ),
        rights("", ["secrets"], &["get", "create", "update"]),
        rights("events.k8s.io", ["events"], &["create", "patch"]),
    ]);
    let operator = roles.operator();
    assert_eq!(may(cluster, &operator, None, None).await, everywhere);
    assert_eq!(may(cluster, &operator, Some("kube-system"), None).await, everywhere);
    let leases = |verbs| rights("coordination.k8s.io", ["leases"], verbs);
    let at_home = union([everywhere.clone(), leases(&["create"])]);
    assert_eq!(may(cluster, &operator, Some(home.name()), None).await, at_home);
    let its_own = union([everywhere, leases(&["create", "get", "patch"])]);
    assert_eq!(may(cluster, &operator, Some(home.name()), Some("tempmail-operator")).await, its_own);
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_may_write_their_kinds_in_their_namespaces_and_never_read_a_secret() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = Roles::install(cluster, home.name()).await;
    for (role, verbs) in [("view", READ), ("edit", EDIT), ("admin", &VERBS)] {
        let member = bind(cluster, home.name(), role, &format!("{}-{role}", roles.release)).await;
        let granted = may(cluster, &member, Some(home.name()), None).await;
        assert_eq!(granted, rights(OWN, TEAM_KINDS, verbs), "{role}");
        assert_eq!(may(cluster, &member, Some("default"), None).await, Rights::new(), "{role} elsewhere");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_part_of_the_roles_that_kubernetes_has() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let _installed = Roles::install(cluster, home.name()).await;
    for (role, verbs) in [("view", READ), ("edit", EDIT), ("admin", &VERBS)] {
        let member = bind(cluster, home.name(), role, role).await;
        let own = || async {
            let granted = may(cluster, &member, Some(home.name()), None).await;
            granted.into_iter().filter(|right| right.ends_with(OWN)).collect::<Rights>()
        };
        let wanted = rights(OWN, TEAM_KINDS, verbs);
        // The controller manager puts them together.
        eventually("the role has our kinds", || async { (own().await == wanted).then_some(()) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_team_may_write_all_kinds_and_nothing_else() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = Roles::install(cluster, home.name()).await;
    let role = format!("{}-platform-admin", roles.release);
    let user = format!("{}-platform", home.name());
    let bind = ["create", "clusterrolebinding", &user, "--clusterrole", &role, "--user", &user];
    cluster.kubectl(&bind).await.expect("the administrator may");
    let granted = may(cluster, &(user.clone(), Vec::new()), None, None).await;
    cluster.kubectl(&["delete", "clusterrolebinding", &user]).await.expect("the administrator may");
    assert_eq!(granted, rights(OWN, PLATFORM_KINDS.into_iter().chain(TEAM_KINDS), &VERBS));
}

/// Somebody new who has a cluster role in a namespace, and nothing else.
async fn bind(cluster: &Cluster, namespace: &str, who: &str, role: &str) -> (String, Vec<String>) {
    let user = format!("{namespace}-{who}-{}", role.len());
    let arguments = ["create", "rolebinding", &user, "-n", namespace, "--clusterrole", role, "--user", &user];
    cluster.kubectl(&arguments).await.expect("the administrator may");
    (user, Vec::new())
}
