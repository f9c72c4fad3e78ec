//! The rights that the roles of the chart give.

mod matrix;
mod operator_rights;

use tempmail_tests::Cluster;
use tempmail_tests::wait::eventually;

use super::charts::render;

/// The roles of the chart, installed.
struct InstalledRoles {
    /// Name of the release, with which the names of the roles begin.
    release: String,
    /// Its namespace.
    namespace: String,
}

impl InstalledRoles {
    /// Installs the roles of a release in a namespace, of the same name; returns when they are enforced.
    async fn install(cluster: &Cluster, namespace: &str) -> Self {
        let roles = Self { release: namespace.to_owned(), namespace: namespace.to_owned() };
        let rendered = render("tempmail", &roles.release, &roles.namespace, &[]).expect("Helm renders");
        cluster.apply(&rendered).await.expect("the API server accepts the roles");
        let (operator, _) = roles.operator();
        // One right everywhere, and one in the namespace.
        for (verb, resource) in [("get", "secrets"), ("create", "leases.coordination.k8s.io")] {
            wait_until_allowed(cluster, &operator, namespace, verb, resource).await;
        }
        roles
    }

    /// User and groups of the operator's service account.
    fn operator(&self) -> (String, Vec<String>) {
        let Self { release, namespace } = self;
        let groups = [
            "system:authenticated".to_owned(),
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
        (format!("system:serviceaccount:{namespace}:{release}-operator"), groups.to_vec())
    }
}

/// Waits until a user has a right in a namespace: the API server enforces roles and bindings some moments
/// after it accepts them.
async fn wait_until_allowed(cluster: &Cluster, user: &str, namespace: &str, verb: &str, resource: &str) {
    let question = ["auth", "can-i", verb, resource, "--namespace", namespace, "--as", user];
    let what = format!("{user} may {verb} {resource}");
    eventually(&what, || async { cluster.kubectl(&question).await.ok() }).await;
}
