//! What `up` prints at the terminal.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use tempmail_model::surface::DropInSurface;
use tempmail_runtime::config::Config;

use super::credentials::{Credentials, SIGN_IN_LINK_FILE};
use super::settings::reachable;
use crate::command::data_directory::DataDirectory;

/// Prints a line about a slow step to standard error.
pub(super) fn print_progress(line: &str) {
    // The start does not depend on it.
    let _ = writeln!(std::io::stderr(), "tempmail: {line}");
}

/// Prints the address of the page, the other addresses, two commands to try, and `ready`. The token and the link that
/// signs in are in it only on a terminal: what goes to a file, a pipe or a journal stays there.
pub(super) fn print(
    config: &Config,
    domains: &[String],
    directory: &DataDirectory,
    credentials: &Credentials,
    sign_in_url: Option<&str>,
) -> std::io::Result<()> {
    let (base_url, smtp, admin) =
        (&config.http.base_url, reachable(config.smtp.listen), reachable(config.admin.listen));
    let (path, domain, all) = (directory.path().display(), &domains[0], domains.join(", "));
    let mut out = std::io::stdout().lock();
    let is_terminal = out.is_terminal();
    let token = if is_terminal { credentials.live_token.clone() } else { token_from_file(directory.path()) };
    let page = match sign_in_url {
        None => String::new(),
        Some(url) if is_terminal => {
            format!("  page         {base_url}\n  dashboard    {url} (signs in, once)\n")
        }
        Some(_) => format!(
            "  page         {base_url}\n  dashboard    the link in {path}/{SIGN_IN_LINK_FILE} signs in, once\n"
        ),
    };
    let drop_ins: String = DropInSurface::ALL
        .into_iter()
        .filter_map(|surface| Some((surface.as_str(), config.compat.of(surface).listen?)))
        .map(|(name, listen)| format!("  {name:<12} http://{}\n", reachable(listen)))
        .collect();
    let text = format!(
        "tempmail is running.

{page}  HTTP         {base_url}
  SMTP         {smtp}
{drop_ins}  probes       http://{admin}/readyz
  metrics      http://{admin}/metrics
  domains      {all}
  data         {path}
  credentials  {path}/credentials.json

Send a mail:
  printf 'From: Ada <ada@example.com>\\r\\nTo: hello@{domain}\\r\\nSubject: Hello\\r\\n\\r\\nIt works.\\r\\n' | curl -sS smtp://{smtp} --mail-from ada@example.com --mail-rcpt hello@{domain} -T -

Read it:
  curl -sS -H \"x-api-token: {token}\" {base_url}/v1/inbox/hello@{domain}

ready
"
    );
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What a shell replaces by the live token of `credentials.json`.
fn token_from_file(directory: &Path) -> String {
    format!("$(grep -o 'tm_live_[0-9a-f]*' '{}/credentials.json')", directory.display())
}
