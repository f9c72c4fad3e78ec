//! The rights that the roles of the chart give.

mod matrix;
mod operator_rights;

use tempmail_tests::Cluster;

use super::charts::render;

/// The roles of the chart, installed.
struct InstalledRoles {
    /// Name of the release, with which the names of the roles begin.
    release: String,
    /// Its namespace.
    namespace: String,
}

impl InstalledRoles {
    /// Installs the roles of a release in a namespace, of the same name.
    async fn install(cluster: &Cluster, namespace: &str) -> Self {
        let roles = Self { release: namespace.to_owned(), namespace: namespace.to_owned() };
        let rendered = render("tempmail", &roles.release, &roles.namespace, &[]).expect("Helm renders");
        cluster.apply(&rendered).await.expect("the API server accepts the roles");
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
