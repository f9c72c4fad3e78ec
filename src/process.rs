//! What a process needs besides its roles.

pub(crate) mod clock_sync;
pub(crate) mod open_files;

use std::sync::Arc;

use anyhow::Context as _;
use tempmail_bus::{LocalBus, RedisBus, SharedBus};
use tempmail_runtime::config::Config;
use uuid::Uuid;

/// The bus over `redis.url`, shared by all processes over the database of this stream; without `redis.url` a bus
/// within this process.
///
/// # Errors
/// `redis.url` is invalid.
pub(crate) async fn connect_bus(config: &Config, stream: Uuid) -> anyhow::Result<SharedBus> {
    let url = &config.redis.url;
    if url.is_empty() {
        return Ok(Arc::new(LocalBus::new()));
    }
    let bus = RedisBus::connect(url.expose(), stream).await;
    Ok(Arc::new(bus.context("`redis.url`")?))
}
