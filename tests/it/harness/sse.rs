//! The event stream format: examples and corner cases of the HTML standard (9.2.6).

use tempmail_tests::EventStream;
use tempmail_tests::http::{self, Request};
use tempmail_tests::sse::{Block, Event, Parser};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn blocks(stream: &[u8]) -> Vec<Block> {
    let mut parser = Parser::default();
    parser.push(stream);
    std::iter::from_fn(|| parser.block()).collect()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn data(data: &str) -> Block {
    Block { data: text(data), ..Block::default() }
}

#[test]
fn parses_the_examples_of_the_standard() {
    assert_eq!(blocks(b"data: YHOO\ndata: +2\ndata: 10\n\n"), [data("YHOO\n+2\n10")]);
    let stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event";
    let comment = Block { comments: vec!["test stream".to_owned()], ..Block::default() };
    let first = Block { id: text("1"), ..data("first event") };
    let second = Block { id: text(""), ..data("second event") };
    assert_eq!(blocks(stream), [comment, first, second], "the third has no empty line after it");
    assert_eq!(blocks(b"data\n\ndata\ndata\n\ndata:"), [data(""), data("\n")]);
    assert_eq!(blocks(b"data:test\n\ndata: test\n\n"), [data("test"), data("test")]);
}

#[test]
fn parses_all_line_endings_in_any_chunks() {
    let whole = "\u{feff}event: a\r\ndata: é\rdata: y\n\r\nid: 7\rretry: 30\r\r\ndata: z\r\n\r\n".as_bytes();
    let first = Block { event: text("a"), ..data("é\ny") };
    let second = Block { id: text("7"), retry: Some(30), ..Block::default() };
    let expected = [first, second, data("z")];
    assert_eq!(blocks(whole), expected);
    for at in 0..whole.len() {
        let mut parser = Parser::default();
        parser.push(&whole[..at]);
        parser.push(&whole[at..]);
        assert_eq!(std::iter::from_fn(|| parser.block()).collect::<Vec<_>>(), expected, "cut at {at}");
    }
}

#[test]
fn ignores_unknown_fields_and_invalid_values() {
    let stream = b"id: a\0b\nretry: 5s\nother: x\nEVENT: x\n data: x\ndata: y\n\n";
    assert_eq!(blocks(stream), [data("y")]);
    assert_eq!(blocks(b"\n\nother: x\n\n"), []);
}

#[tokio::test]
async fn remembers_an_id_without_data_and_dispatches_no_event() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serve = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let length = connection.read(&mut request).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        connection
            .write_all(b"retry: 3000\nid: one\n\ndata: x\n\nevent: e\nid: two\ndata: y\n\nid: 3")
            .await
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let request = Request::new(&http::client(), reqwest::Method::GET, &url).header("last-event-id", "zero");
    let mut stream = EventStream::open(request).await;
    let event =
        |name: &str, id: &str, data: &str| Event { name: name.into(), id: id.into(), data: data.into() };
    assert_eq!(stream.next().await, event("message", "one", "x"));
    assert_eq!(stream.retry(), Some(3000));
    assert_eq!(stream.next().await, event("e", "two", "y"));
    assert_eq!(stream.try_next().await, None);
    assert_eq!(stream.last_event_id(), "two", "what has no empty line after it is not said");
    assert!(stream.ended().await.is_complete);
    assert!(serve.await.unwrap().contains("last-event-id: zero"));
}
