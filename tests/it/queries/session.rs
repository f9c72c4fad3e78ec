//! Makes requests and records the statements that they send.

use super::REPEATED;
use super::background::{BACKGROUND, without_background};
use super::recording::{Recorder, Statement};

/// A request and the statements that it sent.
#[derive(Debug)]
pub struct RecordedRequest {
    pub request: &'static str,
    /// The statements that one request has to send; each is one round trip.
    pub expected: &'static [&'static str],
    /// Those of all [`REPEATED`] requests.
    pub statements: Vec<Statement>,
}

impl RecordedRequest {
    /// The statements of the first request that did not send the expected ones.
    pub fn unexpected(&self) -> Option<Vec<&str>> {
        let sent: Vec<&str> = self.statements.iter().map(|statement| statement.name.as_str()).collect();
        let mut requests = sent.chunks(self.expected.len());
        let unexpected = requests.find(|sent| *sent != self.expected).map(<[&str]>::to_vec);
        let is_complete = sent.len() == self.expected.len() * usize::from(REPEATED);
        unexpected.or_else(|| (!is_complete).then(Vec::new))
    }
}

/// Records one request after the other.
pub struct Session<'a> {
    pub recorder: Recorder<'a>,
    pub recorded: Vec<RecordedRequest>,
    /// The process of the only connection whose statements count; `None`: those of the roles.
    pub process: Option<u32>,
}

impl Session<'_> {
    /// Makes a request [`REPEATED`] times, one after the other, and keeps the statements that it sent.
    pub async fn record<F: Future<Output = ()>>(
        &mut self,
        request: &'static str,
        expected: &'static [&'static str],
        make: impl FnMut(usize) -> F,
    ) {
        let statements = self.statements_of(expected, make).await;
        self.recorded.push(RecordedRequest { request, expected, statements });
    }

    /// Like [`Self::record`], for a request that may send another statement while a view of the role is stale: repeats
    /// all of it, up to 3 times, until it sends the expected statements.
    pub async fn record_with_fresh_view<F: Future<Output = ()>>(
        &mut self,
        request: &'static str,
        expected: &'static [&'static str],
        mut make: impl FnMut(usize) -> F,
    ) {
        for attempt in 1..=3 {
            let statements = self.statements_of(expected, &mut make).await;
            let recorded = RecordedRequest { request, expected, statements };
            if attempt == 3 || recorded.unexpected().is_none() {
                self.recorded.push(recorded);
                return;
            }
        }
    }

    async fn statements_of<F: Future<Output = ()>>(
        &mut self,
        expected: &[&str],
        mut make: impl FnMut(usize) -> F,
    ) -> Vec<Statement> {
        self.recorder.take().await;
        for number in 0..usize::from(REPEATED) {
            make(number).await;
        }
        let is_background = |name: &str| {
            let is_listed = BACKGROUND.contains(&name) && !expected.contains(&name);
            // The settings of a connection that a pool opens.
            is_listed || name.starts_with("SET ")
        };
        let mut statements = without_background(is_background, self.recorder.take().await);
        statements.retain(|statement| self.process.is_none_or(|process| statement.process == process));
        statements
    }
}
