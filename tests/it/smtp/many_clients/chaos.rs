//! Ten thousand clients, or as many as the limit of open files allows.

use super::{hold_half_mails, hold_idle_clients};
use crate::descriptors::ManyConnections;

const CLIENTS: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: ten thousand connections"]
async fn ten_thousand_idle_clients_use_less_than_16_kib_each() {
    let reserved = ManyConnections::reserve(CLIENTS).await;
    let each = hold_idle_clients(reserved.connections).await;
    assert!(each < 16 << 10, "{each} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: ten thousand connections"]
async fn ten_thousand_half_mails_use_less_than_40_kib_each() {
    let reserved = ManyConnections::reserve(CLIENTS).await;
    let each = hold_half_mails(reserved.connections).await;
    assert!(each < 40 << 10, "{each} bytes");
}
