//! `tempmail mail wait`, `code` and `link`.

use std::time::Duration;

use jiff::Timestamp;
use tempmail_client::{
    Client, FoundEmail, LinkFilter, LinkKind, LinkOutcome, MailMatch, Scope, WAIT_MAX, WaitOutcome,
    WaitRequest, is_safe_code, safe_link,
};

use super::instead::{self, Wanted};
use super::{FeatureArg, ScopeArgs, print_fields};
use crate::command::client::ClientFailure;
use crate::command::output;

/// Which mail, and how long.
#[derive(Debug, clap::Args)]
pub(super) struct WaitArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// The oldest mail after this cursor of `new` or another command; `0`: the oldest mail
    #[arg(long, value_name = "CURSOR")]
    since: Option<String>,
    /// Only mail that was accepted after this time
    #[arg(long, value_name = "RFC3339")]
    after: Option<Timestamp>,
    /// Only mail with this in its From header, in upper or lower case
    #[arg(long, value_name = "TEXT")]
    from: Option<String>,
    /// Only mail with this in its recipient
    #[arg(long, value_name = "TEXT")]
    to: Option<String>,
    /// Only mail with this in its Subject
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// Only mail with this in its text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Wait this long; 0: look once
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=WAIT_MAX.as_secs()))]
    timeout: u64,
}

/// Arguments of `link`.
#[derive(Debug, clap::Args)]
pub(super) struct LinkArgs {
    #[command(flatten)]
    wait: WaitArgs,
    /// Only links of this kind: confirm, reset_password, sign_in, accept_invitation, unlock, confirm_unsubscribe or secure_account
    #[arg(long)]
    kind: Option<LinkKind>,
    /// Refuse links to other hosts; may be repeated
    #[arg(long, value_name = "HOST")]
    link_host: Vec<String>,
}

impl WaitArgs {
    fn request(self) -> Result<(WaitRequest, Duration), ClientFailure> {
        let scope = self.scope.scope();
        if self.since.is_none() && self.after.is_none() && !matches!(scope, Scope::Address(_)) {
            return Err(ClientFailure::Usage(
                "--domain and --all need --since or --after; `--since 0` begins with the oldest mail".into(),
            ));
        }
        let Self { since, after, from, to, subject, text, timeout, .. } = self;
        let matching = MailMatch { from, to, subject, text, has: Vec::new() };
        Ok((WaitRequest { scope, since, after, matching, full: false }, Duration::from_secs(timeout)))
    }
}

/// Prints the summary of a mail, its codes and links.
pub(super) async fn for_mail(
    client: &Client,
    args: WaitArgs,
    has: &[FeatureArg],
    full: bool,
    json: bool,
) -> anyhow::Result<()> {
    let (mut request, timeout) = args.request()?;
    request.matching.has = has.iter().map(|feature| (*feature).into()).collect();
    request.full = full;
    let outcome = client.wait(&request, timeout).await;
    let found = found(client, &request, Wanted::Email, outcome).await?;
    if json {
        return output::json(&found);
    }
    let FoundEmail { email, extraction, next_since } = found;
    let mut fields = vec![
        ("id", email.id),
        ("address", email.address),
        ("from", email.from_email),
        ("subject", email.subject),
        ("received", email.created_at),
    ];
    let codes = extraction.codes.into_iter().filter(|code| is_safe_code(&code.code));
    fields.extend(codes.map(|code| ("code", code.code)));
    let links = extraction.links.iter().filter_map(safe_link);
    fields.extend(links.map(|link| ("link", format!("{} {}", link.kind, link.url))));
    fields.push(("next", next_since));
    print_fields(&fields)
}

/// Prints the code and a line break.
pub(super) async fn for_code(client: &Client, args: WaitArgs, json: bool) -> anyhow::Result<()> {
    let (request, timeout) = args.request()?;
    let outcome = client.wait_for_code(&request, timeout).await;
    let found = found(client, &request, Wanted::Code, outcome).await?;
    if json { output::json(&found) } else { output::line(&found.code) }
}

/// Prints the URL and a line break.
pub(super) async fn for_link(client: &Client, args: LinkArgs, json: bool) -> anyhow::Result<()> {
    let filter = LinkFilter::new(args.kind, &args.link_host)
        .map_err(|text| ClientFailure::Usage(format!("--link-host {text:?} is not a host")))?;
    let (request, timeout) = args.wait.request()?;
    let outcome = client.wait_for_link(&request, &filter, timeout).await;
    match found(client, &request, Wanted::Link(args.kind), outcome).await? {
        LinkOutcome::OtherHost { hosts, next_since } => {
            Err(ClientFailure::OtherHost { hosts, next_since }.into())
        }
        LinkOutcome::Found(found) if json => output::json(&found),
        LinkOutcome::Found(found) => output::line(&found.link.url),
    }
}

/// What a wait found, or a failure that tells what came instead.
async fn found<T>(
    client: &Client,
    request: &WaitRequest,
    wanted: Wanted,
    outcome: Result<WaitOutcome<T>, tempmail_client::Error>,
) -> Result<T, ClientFailure> {
    match outcome? {
        WaitOutcome::Found(found) => Ok(found),
        WaitOutcome::Nothing { next_since } => {
            let instead = instead::of(client, request, wanted).await;
            Err(ClientFailure::NothingInTime { next_since, instead })
        }
    }
}
