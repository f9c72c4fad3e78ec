//! A client of server-sent events that reads as EventSource does.

mod parser;

use crate::http::{Answer, Opened, Request};
use crate::wait::within_deadline;

pub use self::parser::{Block, Parser};

/// What EventSource gives to its listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` where the server gave none.
    pub name: String,
    /// What was the last event id then.
    pub id: String,
    /// Its data, lines joined by line feeds.
    pub data: String,
}

/// How a stream ended.
#[derive(Debug)]
pub struct End {
    /// Events that still came.
    pub events: Vec<Event>,
    /// Whether the server ended the answer; else the connection broke.
    pub is_whole: bool,
}

/// An open stream.
#[derive(Debug)]
pub struct EventStream {
    opened: Opened,
    parser: Parser,
    last_event_id: String,
    retry: Option<u64>,
    is_whole: bool,
}

impl EventStream {
    /// Sends a request for a stream; what is answered in its place, where something is.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The answer is not as the OpenAPI document says.
    pub async fn try_open(request: Request) -> reqwest::Result<Result<Self, Answer>> {
        let opened = request.header("accept", "text/event-stream").open().await?;
        if opened.head.status != 200 || !opened.is_stream() {
            return Ok(Err(opened.whole().await?));
        }
        let (parser, last_event_id) = (Parser::default(), String::new());
        Ok(Ok(Self { opened, parser, last_event_id, retry: None, is_whole: true }))
    }

    /// Opens a stream.
    ///
    /// # Panics
    /// It is refused.
    pub async fn open(request: Request) -> Self {
        let opened = within_deadline("the head of a stream", Self::try_open(request)).await;
        match opened.expect("the server answers") {
            Ok(stream) => stream,
            Err(answer) => panic!("no stream: {answer:?}\n{}", answer.text()),
        }
    }

    /// What is answered to a request for a stream that is refused.
    ///
    /// # Panics
    /// It is not.
    pub async fn refused(request: Request) -> Answer {
        let opened = within_deadline("the head of a stream", Self::try_open(request)).await;
        match opened.expect("the server answers") {
            Ok(stream) => panic!("a stream was opened: {:?}", stream.opened.head),
            Err(answer) => answer,
        }
    }

    /// Status and header fields.
    pub fn head(&self) -> &Answer {
        &self.opened.head
    }

    /// What EventSource would send as `Last-Event-ID` now; empty before there is any.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Milliseconds that the server asked to wait before a reconnection.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// All that the server sent up to the next empty line; `None` at the end of the stream.
    pub async fn try_block(&mut self) -> Option<Block> {
        let block = loop {
            if let Some(block) = self.parser.block() {
                break block;
            }
            match self.opened.octets().await {
                Ok(Some(octets)) => self.parser.push(&octets),
                Ok(None) => return None,
                Err(_) => {
                    self.is_whole = false;
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
    /// Nothing comes, or the stream ends.
    pub async fn block(&mut self) -> Block {
        within_deadline("a block of a stream", self.try_block()).await.expect("the stream goes on")
    }

    /// The next event; `None` at the end of the stream.
    pub async fn try_next(&mut self) -> Option<Event> {
        loop {
            let block = self.try_block().await?;
            // Without data there is no event, whatever else the block says.
            let Some(data) = block.data else { continue };
            let name = block.event.filter(|name| !name.is_empty()).unwrap_or_else(|| "message".to_owned());
            return Some(Event { name, id: self.last_event_id.clone(), data });
        }
    }

    /// The next event.
    ///
    /// # Panics
    /// None comes, or the stream ends.
    pub async fn next(&mut self) -> Event {
        within_deadline("an event", self.try_next()).await.expect("the stream goes on")
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// The stream goes on.
    pub async fn ended(mut self) -> End {
        let mut events = Vec::new();
        within_deadline("the end of a stream", async {
            while let Some(event) = self.try_next().await {
                events.push(event);
            }
        })
        .await;
        End { events, is_whole: self.is_whole }
    }
}
