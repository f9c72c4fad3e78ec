//! Kubernetes as the operator sees it: a real API server with its controller manager and etcd.
//! There is no node, so pods stay Pending.

mod cluster;
mod control_plane;
mod database;
mod installation;
mod kubectl;
mod namespace;
mod object_waits;
mod objects;
mod operator_process;
mod proxy;
mod status;
mod team;

pub use self::cluster::Cluster;
pub use self::installation::{Installation, SharedInstallation};
pub use self::kubectl::{KubectlPlugin, program};
pub use self::namespace::Namespace;
pub use self::objects::Objects;
pub use self::operator_process::OperatorProcess;
pub use self::proxy::{ApiFault, ApiProxy, ApiRequest, StopPoint, StopReached, Verb};
pub use self::status::{
    assert_conditions, condition, condition_message, condition_reason, condition_status, secret_value,
    verification_records,
};
pub use self::team::{TEAM_OBJECTS, Team, unique_name};
