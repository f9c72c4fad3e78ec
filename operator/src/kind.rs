//! What the controllers need to know of a kind.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempmail_crds::{ApiToken, Condition, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};
use tempmail_runtime::readiness::Readiness;
use tempmail_store::ResourceKind;

use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::orphan;
use crate::standing::Standing;

/// A kind of objects, and how one is made true.
pub(crate) trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
    /// Its word in the store.
    const KIND: ResourceKind;
    /// Its status.
    type Status: Clone + Debug + PartialEq + Serialize + Send + Sync;

    /// Where this object is read and written.
    fn api(&self, client: &Client) -> Api<Self>;
    /// The status as it was seen last.
    fn status(&self) -> Option<&Self::Status>;
    /// The conditions of a status.
    fn conditions(status: &Self::Status) -> &[Condition];
    /// The conditions of a status, to change.
    fn conditions_mut(status: &mut Self::Status) -> &mut Vec<Condition>;
    /// Says which generation a status is about.
    fn set_generation(status: &mut Self::Status, generation: Option<i64>);
    /// Whether the row stays when the object is deleted.
    fn is_retained(&self) -> bool;
    /// The tenant that it refers to; `None` for kinds that refer to none.
    fn tenant_name(&self) -> Option<&str>;
    /// The domain that it is, or is under; `None` for kinds without one.
    fn domain_name(&self) -> Option<&str> {
        None
    }

    /// Makes true what the object says, as far as that can be done now.
    fn make_true(
        &self,
        context: &Context,
    ) -> impl Future<Output = Result<Standing<Self::Status>, Failure>> + Send;

    /// Lets go of all that stands for a deleted object; says why where that can't be done yet.
    fn let_go(
        &self,
        context: &Context,
    ) -> impl Future<Output = Result<Option<Standing<Self::Status>>, Failure>> + Send {
        async {
            orphan::release(Self::KIND, uid(self), self.is_retained(), context).await?;
            Ok(None)
        }
    }
}

/// Implements what is the same for every kind but for the names.
macro_rules! kind {
    ($kind:ident, $status:ident, cluster) => {
        kind!(@ $kind, $status, |_object, client| kube::Api::all(client.clone()));
    };
    ($kind:ident, $status:ident, namespaced) => {
        kind!(@ $kind, $status, |object, client| {
            kube::Api::namespaced(client.clone(), object.metadata.namespace.as_deref().unwrap_or_default())
        });
    };
    (@ $kind:ident, $status:ident, |$object:ident, $client:ident| $api:expr) => {
        const KIND: tempmail_store::ResourceKind = tempmail_store::ResourceKind::$kind;
        type Status = $status;

        fn api(&self, $client: &kube::Client) -> kube::Api<Self> {
            let $object = self;
            $api
        }
        fn status(&self) -> Option<&$status> {
            self.status.as_ref()
        }
        fn conditions(status: &$status) -> &[tempmail_crds::Condition] {
            &status.conditions
        }
        fn conditions_mut(status: &mut $status) -> &mut Vec<tempmail_crds::Condition> {
            &mut status.conditions
        }
        fn set_generation(status: &mut $status, generation: Option<i64>) {
            status.observed_generation = generation;
        }
    };
}
pub(crate) use kind;

/// Time between two looks for definitions that are missing.
const RETRY: Duration = Duration::from_secs(2);

/// What `/readyz` shows until the definitions are there.
const COMPONENT: &str = "kubernetes";

/// Returns when the API server knows all kinds.
pub(crate) async fn wait_for_definitions(client: &Client, readiness: &Readiness) {
    loop {
        let missing = [
            missing::<Tenant>(client).await,
            missing::<SystemDomain>(client).await,
            missing::<CustomDomain>(client).await,
            missing::<Webhook>(client).await,
            missing::<ApiToken>(client).await,
            missing::<Mailbox>(client).await,
        ];
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        metrics::gauge!("tempmail_operator_crd_missing")
            .set(u32::try_from(missing.len()).unwrap_or(u32::MAX));
        if missing.is_empty() {
            readiness.set_ready(COMPONENT);
            return;
        }
        let why =
            format!("the API server does not serve {}: install the chart tempmail-crds", missing.join(", "));
        tracing::warn!("{why}");
        readiness.set_not_ready(COMPONENT, why);
        tokio::time::sleep(RETRY).await;
    }
}

/// Why the kind can't be read, if it can't.
async fn missing<K>(client: &Client) -> Option<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<DeserializeGuard<K>> = Api::all(client.clone());
    let plural = K::plural(&());
    match api.list(&ListParams::default().limit(1)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.is_not_found() => Some(plural.into_owned()),
        Err(kube::Error::Api(status)) => Some(format!("{plural} ({})", status.reason)),
        Err(_unreachable) => Some(format!("{plural} (it can't be reached)")),
    }
}
