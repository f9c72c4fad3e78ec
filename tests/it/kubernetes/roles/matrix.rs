//! The rights of each role, reviewed by the API server: all others are refused.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use tempmail_tests::Cluster;
use tempmail_tests::wait::eventually;

use super::{InstalledRoles, wait_until_allowed};

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// Reviews that are sent at once.
const REVIEWS: usize = 16;
const READ: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
const OWN: &str = "tempmail.dev";
/// Kinds that platform teams write.
const PLATFORM_KINDS: [&str; 2] = ["tenants", "systemdomains"];
/// Kinds that tenant teams write.
const TEAM_KINDS: [&str; 4] = ["customdomains", "webhooks", "apitokens", "mailboxes"];
/// One that all roles of users may list.
const TEAM_RESOURCE: &str = "customdomains.tempmail.dev";
/// Resources of Kubernetes that are worth protecting.
const OTHERS: [(&str, &str); 18] = [
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
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
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

fn all_resources() -> Vec<(String, String)> {
    let kinds = PLATFORM_KINDS.into_iter().chain(TEAM_KINDS);
    let own = kinds.flat_map(|kind| {
        ["", "/status", "/finalizers"].map(|part| (OWN.to_owned(), format!("{kind}{part}")))
    });
    own.chain(OTHERS.map(|(group, resource)| (group.to_owned(), resource.to_owned()))).collect()
}

/// The rights of a user in a namespace (`None`: in all of them), for any object or the one of a `name`.
async fn rights_of(
    cluster: &Cluster,
    (user, groups): &(String, Vec<String>),
    namespace: Option<&str>,
    name: Option<&str>,
) -> Rights {
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client());
    let all = all_resources();
    let questions = all.iter().flat_map(|resource| VERBS.map(|verb| (resource, verb)));
    let granted = stream::iter(questions).map(async |((group, resource), verb)| {
        let (kind, part) =
            resource.split_once('/').map_or((&**resource, None), |(kind, part)| (kind, Some(part)));
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
        let review =
            reviews.create(&PostParams::default(), &review).await.expect("the review is carried out");
        let is_allowed = review.status.expect("a review has a result").allowed;
        if is_allowed { rights(group, [&**resource], &[verb]) } else { Rights::new() }
    });
    granted.buffer_unordered(REVIEWS).concat().await
}

/// What the operator may do with objects of its own kinds, in each namespace.
fn on_own_kinds() -> Rights {
    let kinds = || PLATFORM_KINDS.into_iter().chain(TEAM_KINDS);
    let status: Vec<String> = kinds().map(|kind| format!("{kind}/status")).collect();
    union([
        rights(OWN, kinds(), &["get", "list", "watch", "patch"]),
        rights(OWN, status.iter().map(String::as_str), &["patch"]),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_has_exactly_these_rights() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = InstalledRoles::install(cluster, home.name()).await;
    let everywhere = union([
        on_own_kinds(),
        rights("", ["namespaces"], READ),
        rights("", ["secrets"], &["get", "create", "update"]),
        rights("events.k8s.io", ["events"], &["create", "patch"]),
    ]);
    let operator = roles.operator();
    assert_eq!(rights_of(cluster, &operator, None, None).await, everywhere);
    assert_eq!(rights_of(cluster, &operator, Some("kube-system"), None).await, everywhere);
    let leases = |verbs| rights("coordination.k8s.io", ["leases"], verbs);
    let in_own_namespace = union([everywhere.clone(), leases(&["create"])]);
    assert_eq!(rights_of(cluster, &operator, Some(home.name()), None).await, in_own_namespace);
    let for_own_lease = union([everywhere, leases(&["create", "get", "patch"])]);
    assert_eq!(
        rights_of(cluster, &operator, Some(home.name()), Some("tempmail-operator")).await,
        for_own_lease
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_of_named_namespaces_has_no_rights_elsewhere_but_on_its_own_kinds() {
    let cluster = Cluster::shared().await;
    let (home, team, other) =
        (cluster.namespace(&[]).await, cluster.namespace(&[]).await, cluster.namespace(&[]).await);
    let roles = InstalledRoles::install_for(cluster, home.name(), &[team.name()]).await;
    let operator = roles.operator();
    let anywhere = on_own_kinds();
    let events = rights("events.k8s.io", ["events"], &["create", "patch"]);
    let secrets = |verbs| rights("", ["secrets"], verbs);

    assert_eq!(rights_of(cluster, &operator, None, None).await, anywhere);
    for namespace in [other.name(), "kube-system"] {
        assert_eq!(rights_of(cluster, &operator, Some(namespace), None).await, anywhere, "{namespace}");
    }
    let for_objects = secrets(&["get", "create", "update"]);
    let in_team = union([anywhere.clone(), for_objects, events.clone()]);
    assert_eq!(rights_of(cluster, &operator, Some(team.name()), None).await, in_team);
    let in_default = union([anywhere.clone(), events]);
    assert_eq!(rights_of(cluster, &operator, Some("default"), None).await, in_default);
    let leases = rights("coordination.k8s.io", ["leases"], &["create"]);
    let at_home = union([anywhere.clone(), secrets(&["create"]), leases]);
    assert_eq!(rights_of(cluster, &operator, Some(home.name()), None).await, at_home);
    // The keys of the installation, which it reads by their name.
    let keys = format!("{}-keys", roles.release);
    let for_keys = rights_of(cluster, &operator, Some(home.name()), Some(&keys)).await;
    assert_eq!(for_keys, union([at_home, secrets(&["get"])]));

    let namespaces = |verbs| union([anywhere.clone(), rights("", ["namespaces"], verbs)]);
    for (name, expected) in [
        (team.name(), namespaces(READ)),
        ("kube-system", namespaces(&["get"])),
        (other.name(), anywhere.clone()),
    ] {
        assert_eq!(rights_of(cluster, &operator, None, Some(name)).await, expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_team_roles_allow_only_the_kinds_of_teams_in_their_namespace() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = InstalledRoles::install(cluster, home.name()).await;
    for (role, verbs) in [("view", READ), ("edit", EDIT), ("admin", &VERBS)] {
        let member = bind(cluster, home.name(), role, &format!("{}-{role}", roles.release)).await;
        let granted = rights_of(cluster, &member, Some(home.name()), None).await;
        assert_eq!(granted, rights(OWN, TEAM_KINDS, verbs), "{role}");
        assert_eq!(
            rights_of(cluster, &member, Some("default"), None).await,
            Rights::new(),
            "{role} elsewhere"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_roles_include_the_team_roles() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let _installed = InstalledRoles::install(cluster, home.name()).await;
    for (role, verbs) in [("view", READ), ("edit", EDIT), ("admin", &VERBS)] {
        let member = bind(cluster, home.name(), role, role).await;
        let own = || async {
            let granted = rights_of(cluster, &member, Some(home.name()), None).await;
            granted.into_iter().filter(|right| right.ends_with(OWN)).collect::<Rights>()
        };
        let wanted = rights(OWN, TEAM_KINDS, verbs);
        // The controller manager aggregates the roles.
        eventually("the role has our kinds", || async { (own().await == wanted).then_some(()) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_role_allows_all_kinds_and_nothing_else() {
    let cluster = Cluster::shared().await;
    let home = cluster.namespace(&[]).await;
    let roles = InstalledRoles::install(cluster, home.name()).await;
    let role = format!("{}-platform-admin", roles.release);
    let user = format!("{}-platform", home.name());
    let bind = ["create", "clusterrolebinding", &user, "--clusterrole", &role, "--user", &user];
    cluster.kubectl(&bind).await.expect("kubectl succeeds");
    wait_until_allowed(cluster, &user, home.name(), "list", TEAM_RESOURCE).await;
    let granted = rights_of(cluster, &(user.clone(), Vec::new()), None, None).await;
    cluster.kubectl(&["delete", "clusterrolebinding", &user]).await.expect("kubectl succeeds");
    assert_eq!(granted, rights(OWN, PLATFORM_KINDS.into_iter().chain(TEAM_KINDS), &VERBS));
}

/// A new user who has a cluster role in a namespace, and no other right. The role lets it list
/// [`TEAM_RESOURCE`].
async fn bind(cluster: &Cluster, namespace: &str, name: &str, role: &str) -> (String, Vec<String>) {
    let user = format!("{namespace}-{name}-{}", role.len());
    let arguments = ["create", "rolebinding", &user, "-n", namespace, "--clusterrole", role, "--user", &user];
    cluster.kubectl(&arguments).await.expect("kubectl succeeds");
    wait_until_allowed(cluster, &user, namespace, "list", TEAM_RESOURCE).await;
    (user, Vec::new())
}
