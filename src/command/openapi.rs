//! `tempmail openapi`

use std::io::Write as _;

use tempmail_api_server::openapi_document;

/// Prints the OpenAPI document of the HTTP interface; `docs/openapi.json` is this text.
pub fn print() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &openapi_document())?;
    writeln!(out)?;
    Ok(())
}
