//! A name server that changes the addresses of a name from query to query, with a TTL of 0, as in a DNS
//! rebinding attack.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::Message;
use hickory_proto::rr::{Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::address_record;

/// See the module. It stops on drop.
#[derive(Debug)]
pub struct RebindingServer {
    address: SocketAddr,
    query_count: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl RebindingServer {
    /// Starts a server. `addresses` gets a name and the number of earlier queries for the same name and
    /// family; only the addresses of the queried family are sent.
    ///
    /// # Panics
    /// Loopback has no free port.
    pub async fn start(addresses: impl Fn(&str, usize) -> Vec<IpAddr> + Send + 'static) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
        let address = socket.local_addr().expect("a socket has an address");
        let query_count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&query_count);
        let task = tokio::spawn(async move {
            let mut before: HashMap<(String, RecordType), usize> = HashMap::new();
            let mut buffer = [0; 4096];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                let message = Message::from_vec(&buffer[..length]).expect("the client sends messages");
                let mut message = message.into_response();
                let (at, family) = (message.queries[0].name().clone(), message.queries[0].query_type());
                let named = at.to_ascii().trim_end_matches('.').to_lowercase();
                let number = before.entry((named.clone(), family)).or_default();
                for data in addresses(&named, *number).into_iter().map(address_record) {
                    if data.record_type() == family {
                        message.add_answer(Record::from_rdata(at.clone(), 0, data));
                    }
                }
                *number += 1;
                counter.fetch_add(1, Ordering::Relaxed);
                let answer = message.to_vec().expect("a message can be written");
                let _ = socket.send_to(&answer, client).await;
            }
        });
        Self { address, query_count, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of received queries.
    pub fn query_count(&self) -> usize {
        self.query_count.load(Ordering::Relaxed)
    }
}

impl Drop for RebindingServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
