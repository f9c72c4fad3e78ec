//! What a user does while the operator is killed.

use tempmail_tests::kubernetes::Team;
use tempmail_tests::rows::SYSTEM_DOMAIN as SHARED_DOMAIN;
use tempmail_tests::wait::eventually;

/// A kind of object that the operator is killed for. Its objects have the name of the tenant.
#[derive(Debug, Clone, Copy)]
pub(super) struct CrashKind {
    name: &'static str,
    /// Whether its objects are in a namespace, and refer to a tenant.
    is_namespaced: bool,
    /// The spec, beside the tenant.
    spec: fn(&Team) -> String,
    /// The final reason of its condition Ready.
    final_reason: &'static str,
    /// Whether it has a secret that can be rotated.
    pub(super) rotates: bool,
}

pub(super) const SYSTEM_DOMAIN: CrashKind = CrashKind {
    name: "SystemDomain",
    is_namespaced: false,
    spec: |team| format!("domain: {}", team.domain("sys")),
    final_reason: "Ready",
    rotates: false,
};
pub(super) const CUSTOM_DOMAIN: CrashKind = CrashKind {
    name: "CustomDomain",
    is_namespaced: true,
    spec: |team| format!("domain: {}, deletionPolicy: Delete", team.domain("mail")),
    final_reason: "DnsLookupFailed",
    rotates: false,
};
pub(super) const WEBHOOK: CrashKind = CrashKind {
    name: "Webhook",
    is_namespaced: true,
    spec: |_team| "url: 'https://hooks.example.com/mail'".to_owned(),
    final_reason: "Ready",
    rotates: true,
};
pub(super) const API_TOKEN: CrashKind = CrashKind {
    name: "ApiToken",
    is_namespaced: true,
    spec: |_team| "type: Pro".to_owned(),
    final_reason: "Ready",
    rotates: true,
};
pub(super) const MAILBOX: CrashKind = CrashKind {
    name: "Mailbox",
    is_namespaced: true,
    spec: |team| format!("address: {}@{SHARED_DOMAIN}", team.tenant),
    final_reason: "Ready",
    rotates: true,
};

/// All kinds but Tenant.
pub(super) const KINDS: &[CrashKind] = &[SYSTEM_DOMAIN, CUSTOM_DOMAIN, WEBHOOK, API_TOKEN, MAILBOX];

/// The spec of the tenants.
const TENANT: &str = "deletionPolicy: Delete";
/// Value of the annotation that requests a rotation.
const ROTATION: &str = "2026-11-21T00:00:00Z";

/// What a user does while the operator is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum UserAction {
    CreateTenant,
    DeleteTenant,
    Create(CrashKind),
    Rotate(CrashKind),
    Delete(CrashKind),
}

impl UserAction {
    /// Declares what the action needs, with an operator that is not killed.
    pub(super) async fn prepare(self, team: &Team) {
        if matches!(self, Self::CreateTenant) {
            return;
        }
        team.declare_tenant(TENANT).await;
        if let Self::Rotate(kind) | Self::Delete(kind) = self {
            create(kind, team).await;
            team.wait_for_reason(&object(kind, team), "Ready", kind.final_reason).await;
        }
    }

    /// Does it; does not wait for the operator.
    pub(super) async fn start(self, team: &Team) {
        match self {
            Self::CreateTenant => team.apply_tenant(TENANT).await,
            Self::DeleteTenant => team.start_deletion(&team.tenant_object()).await,
            Self::Create(kind) => create(kind, team).await,
            Self::Rotate(kind) => team.request_rotation(&object(kind, team), ROTATION).await,
            Self::Delete(kind) => team.start_deletion(&object(kind, team)).await,
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
                team.wait_for_reason(&object(kind, team), "Ready", kind.final_reason).await;
            }
            Self::Rotate(kind) => {
                team.wait_for_status(&object(kind, team), "lastHandledRotateAt", ROTATION).await;
            }
            Self::Delete(kind) => {
                team.wait_until_deleted(&object(kind, team)).await;
                // Kubernetes deletes later what the object owns.
                eventually("its Secret is deleted", || async {
                    team.list("secret").await.is_empty().then_some(())
                })
                .await;
            }
        }
    }
}

async fn create(kind: CrashKind, team: &Team) {
    let spec = (kind.spec)(team);
    if kind.is_namespaced {
        team.apply(kind.name, &team.tenant, &spec).await;
    } else {
        team.apply_object("SystemDomain", &team.tenant, &spec).await;
    }
}

fn object(kind: CrashKind, team: &Team) -> String {
    format!("{}/{}", kind.name.to_lowercase(), team.tenant)
}
