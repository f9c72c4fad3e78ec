//! Namespaces of tests.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace as Object;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource};
use tokio::time::timeout;
use uuid::Uuid;

/// Longest that the end of a test waits for the API server to accept the deletion.
const DELETION_TIMEOUT: Duration = Duration::from_secs(10);

/// A namespace of one test.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    config: Config,
    delete_on_drop: bool,
}

impl Namespace {
    pub(super) async fn create(config: &Config, labels: &[(&str, &str)], delete_on_drop: bool) -> Self {
        let name = format!("test-{}", Uuid::new_v4().simple());
        Self::create_named(config, &name, labels, delete_on_drop).await
    }

    pub(super) async fn create_named(
        config: &Config,
        name: &str,
        labels: &[(&str, &str)],
        delete_on_drop: bool,
    ) -> Self {
        let labels = labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let namespace = Self { name: name.to_owned(), config: config.clone(), delete_on_drop };
        let object = Object { metadata, ..Object::default() };
        let created = Api::all(namespace.client()).create(&PostParams::default(), &object).await;
        created.expect("the API server accepts a namespace");
        namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its objects of a kind, as the administrator sees them.
    ///
    /// # Panics
    /// As [`super::Cluster::client`].
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType: Default, Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client(), &self.name)
    }

    fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("the kubeconfig is valid")
    }

    async fn delete(&self) {
        let namespaces: Api<Object> = Api::all(self.client());
        let parameters = DeleteParams::background();
        let _ = timeout(DELETION_TIMEOUT, namespaces.delete(&self.name, &parameters)).await;
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.delete_on_drop {
            return;
        }
        // The runtime of the test may be ending.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime can be made").block_on(self.delete());
            });
        });
    }
}
