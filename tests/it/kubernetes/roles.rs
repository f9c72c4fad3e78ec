//! What the roles of the chart allow: enough, and no more.

mod life;
mod matrix;

use tempmail_tests::Cluster;

use super::charts::render;

/// The roles of the chart, installed.
struct Roles {
    /// Name of the release; the roles begin with it.
    release: String,
    /// Its namespace.
    namespace: String,
}

impl Roles {
    /// Those of a release in this namespace, called like it.
    async fn install(cluster: &Cluster, namespace: &str) -> Self {
        let roles = Self { release: namespace.to_owned(), namespace: namespace.to_owned() };
        let rendered = render("tempmail", &roles.release, &roles.namespace, &[]).expect("Helm renders");
        cluster.apply(&rendered).await.expect("the API server takes the roles");
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
