//! Follows `next_since`.

use std::net::SocketAddr;

use super::{Caller, Listen, Over, State};
use crate::sse::EventStream;

/// Messages in an answer at most, in turn.
const LIMITS: [usize; 3] = [50, 50, 7];

/// A client of long-polls.
#[derive(Debug)]
pub(super) struct LongPoll {
    caller: Caller,
    path: String,
    /// Empty where it has no place yet.
    since: String,
}

impl LongPoll {
    pub(super) fn new(caller: Caller, path: String, since: String) -> Self {
        Self { caller, path, since }
    }

    /// The place where a stream of events begins: cursors are good in any scope of a tenant.
    async fn find_place(&mut self, server: SocketAddr) -> Result<(), Over> {
        let request = self.caller.get(server, "/v1/sse/user").live(&self.caller.credential);
        let mut stream = match EventStream::try_open(request).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(answer)) => return Err(Over::of(&answer)),
            Err(_) => return Err(Over::Broken),
        };
        while stream.last_event_id().is_empty() {
            stream.try_block().await.ok_or(Over::Broken)?;
        }
        self.since = stream.last_event_id().to_owned();
        Ok(())
    }

    /// One request.
    async fn poll(&mut self, server: SocketAddr, state: &State) -> Result<(), Over> {
        // Whatever fits into an answer, what follows comes with the next.
        let limit = LIMITS[state.seen().attempts % LIMITS.len()];
        let path = format!("{}?limit={limit}&since={}", self.path, self.since);
        state.seen().attempts += 1;
        let request = self.caller.get(server, &path).live(&self.caller.credential);
        let answer = request.try_send().await.map_err(|_| Over::Broken)?;
        match answer.status {
            200 => {
                let body = answer.json();
                let mut seen = state.seen();
                for email in body["emails"].as_array().expect("emails is a list").iter().rev() {
                    seen.give(email);
                }
                self.since = body["next_since"].as_str().expect("next_since is a text").to_owned();
                Ok(())
            }
            204 => {
                answer.header("x-next-since").clone_into(&mut self.since);
                Ok(())
            }
            _ => Err(Over::of(&answer)),
        }
    }
}

impl Listen for LongPoll {
    async fn listen(&mut self, server: SocketAddr, state: &State) -> Over {
        if self.since.is_empty()
            && let Err(over) = self.find_place(server).await
        {
            return over;
        }
        state.seen().is_ready = true;
        loop {
            if let Err(over) = self.poll(server, state).await {
                return over;
            }
        }
    }
}
