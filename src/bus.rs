//! The bus that the configuration asks for.

use std::sync::Arc;

use anyhow::Context as _;
use tempmail_bus::{InProcess, OverRedis, SharedBus};
use tempmail_runtime::config::Config;

/// The bus over `redis.url`, or that of this process alone.
pub async fn connect(config: &Config) -> anyhow::Result<SharedBus> {
    let url = &config.redis.url;
    if url.is_empty() {
        return Ok(Arc::new(InProcess::new()));
    }
    Ok(Arc::new(OverRedis::connect(url.expose()).await.context("`redis.url`")?))
}
