//! Kubernetes as the operator sees it: a real API server with its controller manager and etcd.
//! There is no node, so pods stay Pending.

mod clients;
mod cluster;
mod control_plane;
mod control_plane_pool;
mod database;
mod definitions;
mod installation;
mod kubectl;
mod namespace;
mod object_secrets;
mod object_waits;
mod objects;
mod operator_process;
mod plugin;
mod proxy;
mod status;
mod team;

pub use self::cluster::Cluster;
pub use self::installation::{Installation, SharedInstallation};
pub use self::kubectl::program;
pub use self::namespace::Namespace;
pub use self::objects::Objects;
pub use self::operator_process::OperatorProcess;
pub use self::plugin::KubectlPlugin;
pub use self::proxy::{ApiFault, ApiProxy, ApiRequest, StopPoint, StopReached, Verb};
pub use self::status::{
    assert_conditions, condition, condition_message, condition_reason, condition_status, secret_value,
    verification_records,
};
pub use self::team::{Team, unique_name};
