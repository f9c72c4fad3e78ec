//! Rows that objects of other clusters over the same database hold. They are never taken from a cluster that is not released.

use tempmail_store::ForeignHolder;

use super::context::Context;
use crate::error::ReconcileError;
use crate::kind::Kind;
use crate::status::{Reason, StatusUpdate};

/// Says in the status of an object whose row can't be declared that an object of another cluster holds the row, if one
/// does.
pub(crate) async fn explain<K: Kind>(
    object: &K,
    update: StatusUpdate<K::Status>,
    context: &Context,
) -> Result<StatusUpdate<K::Status>, ReconcileError> {
    let Some(declared) = object.declared() else { return Ok(update) };
    let (store, tenant) = (&context.store, object.tenant_name());
    Ok(match store.find_foreign_holder(context.cluster, K::KIND, declared, tenant).await? {
        Some(holder) => update.with_reason(Reason::HeldByAnotherCluster, message(&holder)),
        None => update,
    })
}

fn message(holder: &ForeignHolder) -> String {
    let ForeignHolder { cluster, name, .. } = holder;
    let object = match &holder.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.clone(),
    };
    if holder.released {
        return format!(
            "The object {object} of the released cluster {cluster} had this resource. Only an object with the \
             same tenant, kind, namespace and name adopts it: create that object."
        );
    }
    format!(
        "The object {object} of the cluster {cluster} over the same database has this resource. If that \
         cluster is gone, run `tempmail cluster release {cluster}`; if it is not, delete one of the two objects."
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn names_the_object_the_cluster_and_the_command() {
        let cluster = Uuid::from_u128(7);
        let (namespace, name) = (Some("team-a".to_owned()), "mail".to_owned());
        let mut holder = ForeignHolder { cluster, released: false, namespace, name };
        let shown = message(&holder);
        assert!(shown.contains("team-a/mail"), "{shown}");
        assert!(shown.contains(&format!("tempmail cluster release {cluster}")), "{shown}");
        holder.released = true;
        assert!(!message(&holder).contains("tempmail cluster release"));
    }
}
