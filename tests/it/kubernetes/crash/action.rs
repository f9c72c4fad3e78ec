//! What a user does while the operator is killed. The objects have the name of the tenant.

use tempmail_tests::kubernetes::Team;
use tempmail_tests::wait::eventually;

use super::super::object_kinds::ObjectKind;

/// The spec of the tenants.
const TENANT: &str = "deletionPolicy: Delete";
/// What the names of domains and addresses begin with.
const LABEL: &str = "killed";
/// Value of the annotation that requests a rotation.
const ROTATION: &str = "2026-11-21T00:00:00Z";

/// What a user does while the operator is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum UserAction {
    CreateTenant,
    DeleteTenant,
    Create(ObjectKind),
    Rotate(ObjectKind),
    Delete(ObjectKind),
}

impl UserAction {
    /// Declares what the action needs, with an operator that is not killed.
    pub(super) async fn prepare(self, team: &Team) {
        if matches!(self, Self::CreateTenant) {
            return;
        }
        team.declare_tenant(TENANT).await;
        if let Self::Rotate(kind) | Self::Delete(kind) = self {
            kind.declare(team, &team.tenant, LABEL).await;
            kind.wait_until_settled(team, &team.tenant).await;
        }
    }

    /// Does it; does not wait for the operator.
    pub(super) async fn start(self, team: &Team) {
        match self {
            Self::CreateTenant => team.apply_tenant(TENANT).await,
            Self::DeleteTenant => team.start_deletion(&team.tenant_object()).await,
            Self::Create(kind) => kind.declare(team, &team.tenant, LABEL).await,
            Self::Rotate(kind) => team.request_rotation(&kind.object(&team.tenant), ROTATION).await,
            Self::Delete(kind) => team.start_deletion(&kind.object(&team.tenant)).await,
        }
    }

    /// Returns when an operator that is not killed has carried it out.
    pub(super) async fn finish(self, team: &Team) {
        match self {
            Self::CreateTenant => {
                team.wait_for_condition(&team.tenant_object(), "Ready").await;
            }
            Self::DeleteTenant => team.wait_until_deleted(&team.tenant_object()).await,
            Self::Create(kind) => {
                kind.wait_until_settled(team, &team.tenant).await;
            }
            Self::Rotate(kind) => {
                team.wait_for_status(&kind.object(&team.tenant), "lastHandledRotateAt", ROTATION).await;
            }
            Self::Delete(kind) => {
                team.wait_until_deleted(&kind.object(&team.tenant)).await;
                // Kubernetes deletes later what the object owns.
                eventually("its Secret is deleted", || async {
                    team.list("secret").await.is_empty().then_some(())
                })
                .await;
            }
        }
    }
}
