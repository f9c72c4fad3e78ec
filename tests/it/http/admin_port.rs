//! The admin port takes nothing from the ports that serve.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::Method;
use tempmail_tests::Fleet;
use tempmail_tests::wait::within_deadline;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;

use crate::descriptors::ManyConnections;

/// The client that opens connections, which is not that of the probes.
const FLOODING: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);
/// Open files of the process: fewer than there are connections.
const FILES: u64 = 512;

/// Opens connections, sends the beginning of a request over each, and shows that the process serves all of its ports.
async fn open_connections(count: usize, request: &str) {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    for process in [fleet.api(0), fleet.ingest(0)] {
        process.set_open_file_limit(FILES);
        let mut open = Vec::new();
        for _ in 0..count {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(FLOODING).unwrap();
            let connection = within_deadline("a connection", socket.connect(process.admin())).await;
            let mut connection = connection.unwrap();
            // One that the process does not serve is reset.
            let _ = connection.write_all(request.as_bytes()).await;
            open.push(connection);
        }
        assert!(process.is_ready().await, "{:?}", process.readyz().await);
        let refused = "tempmail_admin_connections_ended_total{reason=\"refused\"}";
        assert!(process.metric(refused).await > 0.0);
        fleet.deliver(0, "name@inbox.localhost", "arrives").await;
        assert_eq!(fleet.request(0, Method::GET, "/v1/config").send().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_to_the_admin_port_keep_nobody_from_any_port() {
    let many = ManyConnections::reserve(2_100).await;
    open_connections(many.connections, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_the_admin_port_that_do_not_end_keep_nobody_from_any_port() {
    let many = ManyConnections::reserve(2_100).await;
    open_connections(many.connections, "GET ").await;
}
