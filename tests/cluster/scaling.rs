//! `api` and `ingest` scale from one pod to four and back by the chart's HorizontalPodAutoscalers, whose metrics a
//! stand-in for an adapter serves.

use std::time::{Duration, Instant};

use tempmail_tests::load::senders::{LoadProfile, Senders};

use crate::installation::NodeInstallation;
use crate::metrics_api::MetricsApi;
use crate::waiters::Waiters;

const ROLES: [&str; 2] = ["api", "ingest"];
/// `maxReplicas` in `tests/cluster/autoscaling.yaml`.
const PODS: usize = 4;

/// Waiters and connections of senders, which one pod of each role serves by the targets in that file.
const STEADY: (usize, usize) = (20, 4);
/// Those beside them, which need all pods.
const CROWD: (usize, usize) = (200, 40);
/// Time between two mails of a connection.
const INTERVAL: Duration = Duration::from_secs(1);
/// Mails that are accepted after each change.
const MAILS_BETWEEN: usize = 200;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the node of tests/cluster"]
async fn serves_waiters_while_api_and_ingest_scale_by_their_own_metrics() {
    let installation = NodeInstallation::find().await;
    let metrics_api = MetricsApi::start().await;
    installation.upgrade(&["--values", "tests/cluster/autoscaling.yaml"]).await;
    for role in ROLES {
        installation.wait_until_scaling_active(role).await;
    }
    scaled(&installation, 1).await;

    let steady = Waiters::start(&installation, "steady", STEADY.0, 0).await;
    let mail_to_steady = send(&installation, &steady, STEADY.1);
    let crowd = Waiters::start(&installation, "crowd", CROWD.0, 0).await;
    let mail_to_crowd = send(&installation, &crowd, CROWD.1);
    scaled(&installation, PODS).await;
    mail_to_crowd.wait_for_accepted(MAILS_BETWEEN).await;
    crowd.have_every_mail(&mail_to_crowd.stop().await).await;

    drop(crowd);
    scaled(&installation, 1).await;
    mail_to_steady.wait_for_accepted(MAILS_BETWEEN).await;
    steady.have_every_mail(&mail_to_steady.stop().await).await;

    installation.upgrade(&[]).await;
    installation.wait_until_ready().await;
    drop(metrics_api);
}

/// Waits until both roles have this number of pods, and former ones are gone.
async fn scaled(installation: &NodeInstallation, pods: usize) {
    let started = Instant::now();
    for role in ROLES {
        installation.wait_for_pods(role, pods).await;
    }
    installation.wait_until_ready().await;
    println!("pods of api and of ingest: {pods}, after {} s", started.elapsed().as_secs());
}

fn send(installation: &NodeInstallation, to: &Waiters, connections: usize) -> Senders {
    Senders::start(&LoadProfile {
        servers: vec![installation.ingest],
        recipients: to.addresses().to_vec(),
        connections,
        interval: Some(INTERVAL),
        mails_per_connection: None,
    })
}
