//! References to other objects.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The Tenant that a namespaced object belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("self == oldSelf")
    .message("tenantRef can't be changed: delete the object and create it again"))]
pub struct TenantRef {
    /// Name of a Tenant that allows the object's namespace.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// The Secret that the operator writes, in the object's namespace. The kinds that have one refuse another
/// name for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct SecretTarget {
    /// Name of the Secret. A Secret with this name must not exist yet.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("a Secret's name has lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit"))]
    pub name: String,
}
