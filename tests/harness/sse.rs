//! A client of server-sent events that parses as EventSource does.

mod parser;

use crate::http::{OpenResponse, Request, Response};
use crate::wait::within_deadline;

pub use self::parser::{Block, Parser};

/// An event as EventSource dispatches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Event type; `message` if the server sent none.
    pub name: String,
    /// Last event id at that time.
    pub id: String,
    /// Data lines, joined by line feeds.
    pub data: String,
}

/// The end of a stream.
#[derive(Debug)]
pub struct StreamEnd {
    /// Events before the end.
    pub events: Vec<Event>,
    /// Whether the response body is complete; otherwise the connection broke.
    pub is_complete: bool,
}

/// An open stream.
#[derive(Debug)]
pub struct EventStream {
    response: OpenResponse,
    parser: Parser,
    last_event_id: String,
    retry: Option<u64>,
    is_complete: bool,
}

impl EventStream {
    /// Requests a stream; returns the response if it is another one.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The response is not as the OpenAPI document says.
    pub async fn try_open(request: Request) -> reqwest::Result<Result<Self, Response>> {
        let response = request.header("accept", "text/event-stream").open().await?;
        if response.head.status != 200 || !response.is_event_stream() {
            return Ok(Err(response.read_body().await?));
        }
        let (parser, last_event_id) = (Parser::default(), String::new());
        Ok(Ok(Self { response, parser, last_event_id, retry: None, is_complete: true }))
    }

    /// Opens a stream.
    ///
    /// # Panics
    /// The request is rejected.
    pub async fn open(request: Request) -> Self {
        let opened = within_deadline("the head of a stream", Self::try_open(request)).await;
        match opened.expect("the server answers") {
            Ok(stream) => stream,
            Err(answer) => panic!("no stream: {answer:?}\n{}", answer.text()),
        }
    }

    /// The response to a request for a stream that is rejected.
    ///
    /// # Panics
    /// The stream is opened.
    pub async fn refused(request: Request) -> Response {
        let opened = within_deadline("the head of a stream", Self::try_open(request)).await;
        match opened.expect("the server answers") {
            Ok(stream) => panic!("a stream was opened: {:?}", stream.response.head),
            Err(answer) => answer,
        }
    }

    /// Status and header fields.
    pub fn head(&self) -> &Response {
        &self.response.head
    }

    /// What EventSource would send as `Last-Event-ID`; empty before the first id.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Reconnection delay in milliseconds, if the server sent one.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// The next block, up to an empty line; `None` at the end of the stream.
    pub async fn try_block(&mut self) -> Option<Block> {
        let block = loop {
            if let Some(block) = self.parser.block() {
                break block;
            }
            match self.response.next_chunk().await {
                Ok(Some(bytes)) => self.parser.push(&bytes),
                Ok(None) => return None,
                Err(_) => {
                    self.is_complete = false;
                    return None;
                }
            }
        };
        if let Some(id) = &block.id {
            self.last_event_id.clone_from(id);
        }
        self.retry = block.retry.or(self.retry);
        Some(block)
    }

    /// As [`Self::try_block`].
    ///
    /// # Panics
    /// None comes in time, or the stream ends.
    pub async fn block(&mut self) -> Block {
        within_deadline("a block of a stream", self.try_block()).await.expect("the stream stays open")
    }

    /// The next event; `None` at the end of the stream.
    pub async fn try_next(&mut self) -> Option<Event> {
        loop {
            let block = self.try_block().await?;
            // A block without data dispatches no event.
            let Some(data) = block.data else { continue };
            let name = block.event.filter(|name| !name.is_empty()).unwrap_or_else(|| "message".to_owned());
            return Some(Event { name, id: self.last_event_id.clone(), data });
        }
    }

    /// The next event.
    ///
    /// # Panics
    /// None comes in time, or the stream ends.
    pub async fn next(&mut self) -> Event {
        within_deadline("an event", self.try_next()).await.expect("the stream stays open")
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// The stream stays open.
    pub async fn ended(mut self) -> StreamEnd {
        let mut events = Vec::new();
        within_deadline("the end of a stream", async {
            while let Some(event) = self.try_next().await {
                events.push(event);
            }
        })
        .await;
        StreamEnd { events, is_complete: self.is_complete }
    }
}
