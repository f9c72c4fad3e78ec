//! What Redis does in one step. All times are those of the server.

use std::sync::LazyLock;

use redis::{Cmd, cmd};

/// A script, and the name under which the server has it.
#[derive(Debug)]
pub(super) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// What the server answers to [`load`](Self::load).
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// The command that gives it to the server.
    pub(super) fn load(&self) -> Cmd {
        let mut command = cmd("SCRIPT");
        command.arg("LOAD").arg(self.code);
        command
    }
}

/// Takes one of the places under a key.
pub(super) static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));
/// Adds a place again that is held.
pub(super) static ADOPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("adopt.lua")));
/// Begins a session, or says that it lives on.
pub(super) static BEAT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("beat.lua")));
/// Counts a request.
pub(super) static COUNT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("count.lua")));
/// Counts a failure.
pub(super) static ATTEMPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("attempt.lua")));
/// Takes a failure back.
pub(super) static TAKE_BACK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take_back.lua")));

/// Every script.
pub(super) static ALL: [&LazyLock<Script>; 6] = [&TAKE, &ADOPT, &BEAT, &COUNT, &ATTEMPT, &TAKE_BACK];

/// The command that runs a script the server has been given.
pub(super) fn run(script: &Script, keys: &[&str]) -> Cmd {
    let mut command = cmd("EVALSHA");
    command.arg(script.hash()).arg(keys.len()).arg(keys);
    command
}
