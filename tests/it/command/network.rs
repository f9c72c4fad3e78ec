//! What stands between the command line and its server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempmail_tests::{App, CommandOutput};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Answers the first requests by itself, each with one of these answers, and passes all others on to the server.
async fn front(server: SocketAddr, answers: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                match answers.get(count.fetch_add(1, Ordering::Relaxed)) {
                    Some(answer) => {
                        let mut request = [0; 4_096];
                        let _ = stream.read(&mut request).await;
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                    None => {
                        let mut server = TcpStream::connect(server).await.unwrap();
                        let _ = copy_bidirectional(&mut stream, &mut server).await;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn asks_again_where_something_before_the_server_fails_for_a_moment() {
    let app = App::start().await;
    app.deliver("box@inbox.localhost", "Your code", "Your sign-in code is 482913.").await;
    for answers in [
        &["HTTP/1.1 520 Unknown\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"][..],
        &[
            "HTTP/1.1 522 Timed Out\r\nConnection: close\r\n\r\n<html>",
            "HTTP/1.1 530 Origin\r\nConnection: close\r\nContent-Length: 9\r\n\r\ncut",
        ],
        &["HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"],
        &[
            "HTTP/1.1 503 Busy\r\nConnection: close\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
        ],
    ] {
        for arguments in [&["code", "box@inbox.localhost"][..], &["list", "box@inbox.localhost"]] {
            let url = format!("http://{}", front(app.http(), answers).await);
            let environment =
                [("TEMPMAIL_CLIENT_URL", url.as_str()), ("TEMPMAIL_CLIENT_TOKEN", app.tenant.live.as_str())];
            let arguments: Vec<&str> = ["mail"].into_iter().chain(arguments.iter().copied()).collect();
            CommandOutput::run(&arguments, &environment).await.success();
        }
    }
}
