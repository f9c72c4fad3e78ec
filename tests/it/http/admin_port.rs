//! The admin port takes nothing from the ports that serve.

use reqwest::Method;
use tempmail_tests::Fleet;
use tempmail_tests::wait::within_deadline;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::descriptors::ManyConnections;

/// Open files of the process: fewer than there are connections.
const FILES: u64 = 512;

/// Opens connections, sends the beginning of a request over each, and shows that the process serves all of its ports.
async fn open_connections(count: usize, request: &str) {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    for process in [fleet.api(0), fleet.ingest(0)] {
        process.set_open_file_limit(FILES);
        let mut open = Vec::new();
        for _ in 0..count {
            let connection = within_deadline("a connection", TcpStream::connect(process.admin())).await;
            let mut connection = connection.unwrap();
            // One that the process has closed for another is reset.
            let _ = connection.write_all(request.as_bytes()).await;
            open.push(connection);
        }
        assert!(process.is_ready().await, "{:?}", process.readyz().await);
        if !request.is_empty() {
            let replaced = "tempmail_admin_connections_ended_total{reason=\"replaced\"}";
            assert!(process.metric(replaced).await > 0.0);
        }
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
