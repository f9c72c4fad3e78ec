//! The failing network.

use tempmail_tests::FaultyNetwork;
use tempmail_tests::wait::within_deadline;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An echo server behind a network.
async fn echo() -> FaultyNetwork {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = connection.into_split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    FaultyNetwork::to(address).await
}

async fn read(client: &mut TcpStream) -> u8 {
    within_deadline("an echo", client.read_u8()).await.unwrap()
}

#[tokio::test]
async fn drops_lost_bytes_and_delivers_held_ones_later() {
    let network = echo().await;
    let mut client = TcpStream::connect(network.address()).await.unwrap();
    client.write_all(b"1").await.unwrap();
    assert_eq!(read(&mut client).await, b'1');
    network.stall();
    client.write_all(b"2").await.unwrap();
    network.restore();
    assert_eq!(read(&mut client).await, b'2');
    network.blackhole();
    // More than the buffers of the sockets hold.
    within_deadline("the network reads it", client.write_all(&vec![b'3'; 64 << 20])).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(
        within_deadline("the end", client.read(&mut [0; 1])).await.unwrap(),
        0,
        "none of it came back"
    );
}

#[tokio::test]
async fn stops_reading_while_it_holds_bytes() {
    let network = echo().await;
    network.stall();
    let client = TcpStream::connect(network.address()).await.unwrap();
    let mut taken = 0;
    while let Ok(length) = client.try_write(&[b'4'; 65536]) {
        taken += length;
        assert!(taken < 1 << 30, "the network still reads");
        tokio::task::yield_now().await;
    }
    network.cut();
    within_deadline("the connection is closed", async {
        while !matches!(client.try_read(&mut [0; 1]), Ok(0)) {
            if client.try_read(&mut [0; 1]).is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
            {
                break;
            }
            client.readable().await.unwrap();
        }
    })
    .await;
}
