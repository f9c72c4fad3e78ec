//! What `up` prints at the terminal.

use std::io::Write as _;

use tempmail_runtime::config::Config;

use super::installation::Credentials;
use super::settings::reachable;
use crate::command::data_directory::DataDirectory;

/// Prints a line about a slow step to standard error.
pub(super) fn print_progress(line: &str) {
    // The start does not depend on it.
    let _ = writeln!(std::io::stderr(), "tempmail: {line}");
}

/// Prints the addresses, two commands to try, and `ready`.
pub(super) fn print(
    config: &Config,
    domains: &[String],
    directory: &DataDirectory,
    credentials: &Credentials,
) -> std::io::Result<()> {
    let (base_url, smtp, admin) =
        (&config.http.base_url, reachable(config.smtp.listen), reachable(config.admin.listen));
    let (path, domain, all) = (directory.path().display(), &domains[0], domains.join(", "));
    let token = credentials.live_token();
    let text = format!(
        "tempmail is running.

  HTTP         {base_url}
  SMTP         {smtp}
  probes       http://{admin}/readyz
  metrics      http://{admin}/metrics
  domains      {all}
  data         {path}
  credentials  {path}/credentials.json

Send a mail:
  printf 'From: Ada <ada@example.com>\\r\\nTo: hello@{domain}\\r\\nSubject: Hello\\r\\n\\r\\nIt works.\\r\\n' | curl -sS smtp://{smtp} --mail-from ada@example.com --mail-rcpt hello@{domain} -T -

Read it:
  curl -sS -H 'x-api-token: {token}' {base_url}/v1/inbox/hello@{domain}

ready
"
    );
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
