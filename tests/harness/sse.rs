//! A client of server-sent events that parses as EventSource does.

use std::collections::VecDeque;
use std::mem::take;

use crate::http::{OpenResponse, Request, Response};
use crate::wait::within_deadline;

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

/// The lines between two empty lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// Comments, without the colon and one space.
    pub comments: Vec<String>,
    /// The last `event`.
    pub event: Option<String>,
    /// All `data` lines, joined by line feeds.
    pub data: Option<String>,
    /// The last `id` without U+0000.
    pub id: Option<String>,
    /// The last numeric `retry`, in milliseconds.
    pub retry: Option<u64>,
}

/// Incremental parser of an event stream. An incomplete block at the end is discarded, as the standard demands.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed belongs to it.
    after_return: bool,
    /// Only the first line may begin with a byte order mark.
    has_first_line: bool,
    block: Block,
    complete: VecDeque<Block>,
}

impl Parser {
    /// Parses further bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' if take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
        }
    }

    /// The next complete block.
    pub fn block(&mut self) -> Option<Block> {
        self.complete.pop_front()
    }

    fn end_line(&mut self) {
        let bytes = take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.has_first_line { &*line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.has_first_line = true;
        if line.is_empty() {
            let block = take(&mut self.block);
            if block != Block::default() {
                self.complete.push_back(block);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => self.block.comments.push(value.to_owned()),
            "event" => self.block.event = Some(value.to_owned()),
            "data" => match &mut self.block.data {
                Some(data) => *data = format!("{data}\n{value}"),
                None => self.block.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.block.retry = value.parse().ok().or(self.block.retry);
            }
            _ => {}
        }
    }
}
