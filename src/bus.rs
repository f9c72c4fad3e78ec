//! The bus that the configuration asks for.

use std::sync::Arc;

use anyhow::Context as _;
use tempmail_bus::{LocalBus, RedisBus, SharedBus};
use tempmail_runtime::config::Config;
use tempmail_store::Store;

/// The bus over `redis.url`, for the processes over this store, or that of this process alone.
pub async fn connect(config: &Config, store: &Store) -> anyhow::Result<SharedBus> {
    let url = &config.redis.url;
    if url.is_empty() {
        return Ok(Arc::new(LocalBus::new()));
    }
    let bus = RedisBus::connect(url.expose(), store.stream_id().await?).await;
    Ok(Arc::new(bus.context("`redis.url`")?))
}
