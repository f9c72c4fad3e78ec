//! Keeps the places of this process in Redis: under a session that lives while it beats.
//!
//! A place is a member `<session>:<number>` of its key's sorted set, and counts while its session
//! lives. So those of a process that was killed are free when its session is dead, whoever takes
//! next; nothing is renewed a place.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value, cmd};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::away::Away;
use super::commands::Commands;
use super::lease::{Held, Operation};
use super::name::{Names, PLACES_EXPIRE, SESSIONS_EXPIRE};
use super::script::{self, ADOPT, BEAT, TAKE};
use crate::PermitKey;

/// Time between two beats of a session.
const BEAT_PERIOD: Duration = Duration::from_secs(1);
/// Time without a beat after which a session is dead.
const SESSION_LIFE: Duration = Duration::from_secs(4);
/// Time after which a process takes a new session although nothing happened, so that the keys
/// of places that are held for long do not expire.
const SESSION_AGE: Duration = Duration::from_secs(12 * 3600);
/// Operations, or places to add again, in one exchange with Redis.
const TOGETHER: usize = 256;

/// Where all operations on places come by, in their order.
#[derive(Debug)]
pub(super) struct Desk {
    names: Arc<Names>,
    held: Arc<Held>,
    operations: UnboundedReceiver<Operation>,
    session: String,
}

impl Desk {
    pub(super) fn new(names: Arc<Names>, held: Arc<Held>, operations: UnboundedReceiver<Operation>) -> Self {
        Self { names, held, operations, session: String::new() }
    }

    /// Drops every operation, since Redis is away; ends when the process leaves.
    pub(super) async fn serve_alone(&mut self) {
        while let Some(operation) = self.operations.recv().await {
            if matches!(operation, Operation::Leave { .. }) {
                return;
            }
        }
    }

    /// Begins a new session and adds what is held under it. So what was lost is there again, and
    /// what should have been freed meanwhile is.
    pub(super) async fn join(&mut self, commands: &Commands) -> Result<(), Away> {
        let session = Uuid::new_v4().simple().to_string();
        commands.send_one(self.beat(&session, true)).await?;
        let held = self.held.all();
        for some in held.chunks(TOGETHER) {
            let adopt = some.iter().map(|&(number, key)| self.adopt(&session, number, key));
            let together: Vec<Cmd> = adopt.chain([self.beat(&session, true)]).collect();
            commands.send(&together).await?;
        }
        let earlier = std::mem::replace(&mut self.session, session);
        commands.send_one(self.end(&earlier)).await?;
        Ok(())
    }

    /// Serves operations and keeps the session alive, until the process leaves.
    pub(super) async fn serve(&mut self, commands: &Commands) -> Result<(), Away> {
        let mut joined = Instant::now();
        let mut beats = interval(BEAT_PERIOD);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut some = Vec::with_capacity(TOGETHER);
        loop {
            tokio::select! {
                _ = beats.tick() => {
                    let lives = joined.elapsed() < SESSION_AGE
                        && commands.send_one(self.beat(&self.session, false)).await? == Value::Int(1);
                    if !lives {
                        self.join(commands).await?;
                        joined = Instant::now();
                    }
                }
                count = self.operations.recv_many(&mut some, TOGETHER) => {
                    if count == 0 {
                        commands.send_one(self.end(&self.session)).await?;
                        return Ok(());
                    }
                    if self.serve_some(commands, &mut some).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Serves operations together; whether one of them was to leave.
    async fn serve_some(&mut self, commands: &Commands, some: &mut Vec<Operation>) -> Result<bool, Away> {
        let mut answers = commands.send(&self.commands_of(some)).await?;
        if answers.contains(&Value::Int(-1)) {
            // Redis was emptied since the last beat. Takes that it did are done again, which
            // changes nothing.
            self.join(commands).await?;
            answers = commands.send(&self.commands_of(some)).await?;
        }
        let mut left = false;
        for (operation, told) in some.drain(..).zip(answers) {
            // Whoever waited may have gone: its place was or will be given back.
            match operation {
                Operation::Take { answer, .. } => match told {
                    Value::Int(1) => drop(answer.send(true)),
                    Value::Int(0) => drop(answer.send(false)),
                    _ => {}
                },
                Operation::Free { done, .. } => drop(done),
                Operation::Leave { done } => {
                    left = true;
                    drop(done);
                }
            }
        }
        Ok(left)
    }

    fn commands_of(&self, operations: &[Operation]) -> Vec<Cmd> {
        let command = |operation: &Operation| match *operation {
            Operation::Take { number, key, most, .. } => self.take(number, key, most),
            Operation::Free { number, key, .. } => self.free(number, key),
            Operation::Leave { .. } => self.end(&self.session),
        };
        operations.iter().map(command).collect()
    }

    fn take(&self, number: u64, key: PermitKey, most: usize) -> Cmd {
        let mut command = script::run(&TAKE, &[&self.names.places(key), &self.names.sessions()]);
        command.arg(&self.session).arg(number).arg(most).arg(milliseconds(PLACES_EXPIRE));
        command
    }

    fn free(&self, number: u64, key: PermitKey) -> Cmd {
        let mut command = cmd("ZREM");
        command.arg(self.names.places(key)).arg(format!("{}:{number}", self.session));
        command
    }

    /// Adds a place under `session`, in place of the same one under the present session.
    fn adopt(&self, session: &str, number: u64, key: PermitKey) -> Cmd {
        let mut command = script::run(&ADOPT, &[&self.names.places(key)]);
        command.arg(session).arg(number).arg(&self.session).arg(milliseconds(PLACES_EXPIRE));
        command
    }

    fn beat(&self, session: &str, begin: bool) -> Cmd {
        let mut command = script::run(&BEAT, &[&self.names.sessions()]);
        let (life, expire) = (milliseconds(SESSION_LIFE), milliseconds(SESSIONS_EXPIRE));
        command.arg(session).arg(life).arg(u8::from(begin)).arg(expire);
        command
    }

    /// Ends a session: all of its places are free.
    fn end(&self, session: &str) -> Cmd {
        let mut command = cmd("ZREM");
        command.arg(self.names.sessions()).arg(session);
        command
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
