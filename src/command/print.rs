//! `tempmail config`, `openapi`, `crds`, `api-reference` and `reasons`: documents that are generated from the source and
//! kept in the repository; and `completions`, scripts by which shells complete commands and arguments.

use std::io::Write as _;

use clap_complete::{Shell, generate};
use tempmail_api_server::{openapi_document, openapi_without_webhooks};
use tempmail_runtime::config::reference;

/// Prints the reference of all settings: `docs/configuration.md`.
pub(crate) fn config() -> anyhow::Result<()> {
    std::io::stdout().write_all(reference().as_bytes())?;
    Ok(())
}

/// Prints the OpenAPI document of the HTTP interface: `docs/openapi.json`. Without webhooks it is for generators of clients.
pub(crate) fn openapi(without_webhooks: bool) -> anyhow::Result<()> {
    let document = if without_webhooks { openapi_without_webhooks() } else { openapi_document() };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)?;
    Ok(())
}

/// Prints the custom resource definitions: `charts/tempmail-crds/crds.yaml`.
pub(crate) fn crds() -> anyhow::Result<()> {
    std::io::stdout().write_all(tempmail_crds::manifests()?.as_bytes())?;
    Ok(())
}

/// Prints the reference of the custom resources: `docs/api-reference.md`.
pub(crate) fn api_reference() -> anyhow::Result<()> {
    std::io::stdout().write_all(tempmail_crds::api_reference().as_bytes())?;
    Ok(())
}

/// Prints the reasons of conditions and events of custom resources, with their messages: `docs/reasons.md`.
pub(crate) fn reasons() -> anyhow::Result<()> {
    std::io::stdout().write_all(tempmail_operator::reason_reference().as_bytes())?;
    Ok(())
}

/// Prints the script for a shell.
pub(crate) fn completions(shell: Shell, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut command, "tempmail", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
