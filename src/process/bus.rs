//! The bus that the configuration selects.

use std::sync::Arc;

use anyhow::Context as _;
use tempmail_bus::{LocalBus, RedisBus, SharedBus};
use tempmail_runtime::config::Config;
use tempmail_store::Store;

/// The bus over `redis.url`, shared by all processes over this database; without `redis.url` a bus
/// within this process.
///
/// # Errors
/// `redis.url` is invalid, or Postgres does not answer.
pub(crate) async fn connect(config: &Config, store: &Store) -> anyhow::Result<SharedBus> {
    let url = &config.redis.url;
    if url.is_empty() {
        return Ok(Arc::new(LocalBus::new()));
    }
    let bus = RedisBus::connect(url.expose(), store.stream_id().await?).await;
    Ok(Arc::new(bus.context("`redis.url`")?))
}
