//! Rates and failures over all processes: Redis decides what the process' own limit lets pass.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, from_redis_value};

use super::commands::Gate;
use super::script::{self, ATTEMPT, COUNT, TAKE_BACK};
use crate::{FailureLimit, RateDecision, RateKey, RateLimit};

/// Counts a request; `None` where Redis does not answer.
pub(super) async fn count(gate: &Gate, limit: &RateLimit, key: RateKey) -> Option<RateDecision> {
    let mut command = script::run(&COUNT, &[&gate.names().rate(limit.name(), key)]);
    command.arg(microseconds(limit.period()).max(1)).arg(limit.limit());
    let (allowed, remaining, wait): (bool, u32, u64) = ask(gate, command).await?;
    Some(limit.decision(allowed, remaining, Duration::from_micros(wait)))
}

/// Counts a failure beforehand; `None` where Redis does not answer.
pub(super) async fn attempt(gate: &Gate, limit: &FailureLimit, key: RateKey) -> Option<Result<(), Duration>> {
    let mut command = script::run(&ATTEMPT, &[&gate.names().failures(limit.name(), key)]);
    command.arg(limit.most()).arg(microseconds(limit.window()).div_ceil(1000).max(1));
    let wait: i64 = ask(gate, command).await?;
    Some(u64::try_from(wait).map_or(Ok(()), |wait| Err(Duration::from_millis(wait))))
}

/// Takes a counted failure back, if Redis answers.
pub(super) async fn take_back(gate: &Gate, limit: &FailureLimit, key: RateKey) {
    let _: Option<u64> =
        ask(gate, script::run(&TAKE_BACK, &[&gate.names().failures(limit.name(), key)])).await;
}

async fn ask<T: FromRedisValue>(gate: &Gate, command: Cmd) -> Option<T> {
    let answer = gate.commands()?.send_one(command).await.ok()?;
    from_redis_value(answer).ok()
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
