//! `tempmail mail`: a client of a tempmail server for shells. It makes addresses, waits for mail, and prints its code or
//! link. `tempmail mcp` serves the same to a language model: the Model Context Protocol by standard input and output, for a
//! client on this machine.

pub(super) mod instead;
mod wait;

use anyhow::anyhow;
use clap::{Subcommand, ValueEnum};
use tempmail_client::{Client, Email, Feature, RequestedAddress, Scope, is_safe_code, safe_link};
use tempmail_mcp::{Deletion, McpService, serve_stdio};
use uuid::Uuid;

use super::client::{ClientArgs, ClientFailure};
use super::output;
use wait::{LinkArgs, WaitArgs};

/// Arguments of `tempmail mail`.
#[derive(Debug, clap::Args)]
pub(crate) struct MailArgs {
    #[command(flatten)]
    server: ClientArgs,
    /// Print JSON, errors included
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: MailCommand,
}

#[derive(Debug, Subcommand)]
enum MailCommand {
    /// Make an address; print it and a cursor that is before its first mail
    New(NewArgs),
    /// Wait for a mail; print its summary, codes and links
    Wait(FullWaitArgs),
    /// Wait for a mail with a one-time code; print the code
    Code(WaitArgs),
    /// Wait for a mail with a link to confirm, reset, sign in, …; print the URL
    Link(LinkArgs),
    /// Print a mail as text
    Read {
        /// Id of the mail
        id: Uuid,
    },
    /// List the newest mail
    List(ListArgs),
    /// Delete mail
    Delete(DeleteArgs),
}

/// Arguments of `new`.
#[derive(Debug, clap::Args)]
struct NewArgs {
    /// Domain of the address: a system domain, or a verified domain of the tenant [default: the default domain]
    #[arg(long)]
    domain: Option<String>,
    /// Local part of the address [default: a random one]
    #[arg(long, value_name = "NAME")]
    local_part: Option<String>,
}

/// Arguments of `wait`.
#[derive(Debug, clap::Args)]
struct FullWaitArgs {
    #[command(flatten)]
    wait: WaitArgs,
    /// Only mail that has this; may be repeated
    #[arg(long, value_enum, value_name = "WHAT")]
    has: Vec<FeatureArg>,
    /// Print the whole mail with --json
    #[arg(long, requires = "json")]
    full: bool,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// How many, at most
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=50))]
    limit: u8,
}

/// Arguments of `delete`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct DeleteArgs {
    /// Ids of mails
    #[arg(value_name = "ID")]
    ids: Vec<Uuid>,
    /// Delete all mail of this address
    #[arg(long, value_name = "ADDRESS")]
    inbox: Option<String>,
}

/// Whose mail.
#[derive(Debug, clap::Args)]
struct ScopeArgs {
    /// Address that the mail is to
    #[arg(value_name = "ADDRESS", required_unless_present_any = ["of_domain", "all"], conflicts_with_all = ["of_domain", "all"])]
    address: Option<String>,
    /// Mail to every address under this verified domain of the tenant
    #[arg(id = "of_domain", long = "domain", value_name = "DOMAIN", conflicts_with = "all")]
    domain: Option<String>,
    /// Mail to all mailboxes and domains of the tenant; shared inboxes are not among them
    #[arg(long)]
    all: bool,
}

impl ScopeArgs {
    /// Whose mail.
    fn scope(&self) -> Scope {
        match (&self.address, &self.domain) {
            (Some(address), _) => Scope::Address(address.clone()),
            (None, Some(domain)) => Scope::Domain(domain.clone()),
            (None, None) => Scope::All,
        }
    }
}

/// What a mail has.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum FeatureArg {
    Code,
    Link,
    Attachment,
}

impl From<FeatureArg> for Feature {
    fn from(argument: FeatureArg) -> Self {
        match argument {
            FeatureArg::Code => Self::Code,
            FeatureArg::Link => Self::Link,
            FeatureArg::Attachment => Self::Attachment,
        }
    }
}

/// Runs a command; what it does not find is a [`ClientFailure`].
pub(crate) async fn run(args: MailArgs) -> anyhow::Result<()> {
    let MailArgs { server, json, command } = args;
    let ran = match server.client() {
        Ok(client) => command.run(&client, json).await,
        Err(failure) => Err(failure.into()),
    };
    if let Err(error) = &ran
        && json
        && let Some(failure) = error.downcast_ref::<ClientFailure>()
    {
        output::json(&failure.json())?;
    }
    ran
}

impl MailCommand {
    async fn run(self, client: &Client, json: bool) -> anyhow::Result<()> {
        match self {
            Self::New(args) => new(client, args, json).await,
            Self::Wait(FullWaitArgs { wait, has, full }) => {
                wait::for_mail(client, wait, &has, full, json).await
            }
            Self::Code(args) => wait::for_code(client, args, json).await,
            Self::Link(args) => wait::for_link(client, args, json).await,
            Self::Read { id } => read(client, id, json).await,
            Self::List(args) => list(client, args, json).await,
            Self::Delete(args) => delete(client, args, json).await,
        }
    }
}

async fn new(client: &Client, args: NewArgs, json: bool) -> anyhow::Result<()> {
    let requested = RequestedAddress { domain: args.domain, local_part: args.local_part };
    let made = client.make_address(&requested).await.map_err(ClientFailure::from)?;
    if json {
        return output::json(&made);
    }
    output::line(&format!("{} {}", made.address, made.since))
}

async fn list(client: &Client, args: ListArgs, json: bool) -> anyhow::Result<()> {
    let listed = client.list(&args.scope.scope(), args.limit).await.map_err(ClientFailure::from)?;
    if json {
        return output::json(&listed);
    }
    let rows: Vec<[String; 5]> = listed
        .emails
        .iter()
        .map(|email| {
            [&email.id, &email.created_at, &email.address, &email.from_email, &email.subject]
                .map(Clone::clone)
        })
        .collect();
    output::table(["ID", "RECEIVED", "ADDRESS", "FROM", "SUBJECT"], &rows)
}

async fn delete(client: &Client, args: DeleteArgs, json: bool) -> anyhow::Result<()> {
    if let Some(address) = &args.inbox {
        client.clear_inbox(address).await.map_err(ClientFailure::from)?;
    }
    for id in &args.ids {
        client.delete_email(*id).await.map_err(ClientFailure::from)?;
    }
    if json { output::json(&serde_json::json!({"deleted": true})) } else { Ok(()) }
}

/// Prints a mail: what is known about it, an empty line, and its text as it is shown.
async fn read(client: &Client, id: Uuid, json: bool) -> anyhow::Result<()> {
    let email = client.email(id).await.map_err(ClientFailure::from)?;
    if json {
        return output::json(&email);
    }
    print_fields(&fields(&email))?;
    let text = if email.shown_text.is_empty() { &email.text_body } else { &email.shown_text };
    if text.is_empty() {
        return Ok(());
    }
    output::line("")?;
    output::text(text.trim_end_matches(['\r', '\n']))
}

fn fields(email: &Email) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("from", email.from.clone()),
        ("to", email.to.join(", ")),
        ("subject", email.subject.clone()),
        ("address", email.address.clone()),
        ("received", email.created_at.clone()),
        ("expires", email.expires_at.clone()),
    ];
    for attachment in &email.attachments {
        let name = attachment.filename.as_deref().unwrap_or("without a name");
        let (index, media, size) = (attachment.index, &attachment.content_type, attachment.size);
        fields.push(("attachment", format!("{index} {name} ({media}, {size} bytes)")));
    }
    let codes = email.extraction.codes.iter().filter(|code| is_safe_code(&code.code));
    fields.extend(codes.map(|code| ("code", code.code.clone())));
    let links = email.extraction.links.iter().filter_map(safe_link);
    fields.extend(links.map(|link| ("link", format!("{} {}", link.kind, link.url))));
    fields
}

/// Prints names and values from a mail, a line each, with the values below each other.
fn print_fields(fields: &[(&str, String)]) -> anyhow::Result<()> {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in fields {
        output::line(&format!("{name:width$}  {value}"))?;
    }
    Ok(())
}

/// Arguments of `tempmail mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    server: ClientArgs,
    /// Offer tools that delete mail
    #[arg(long)]
    allow_delete: bool,
}

/// Serves until standard input ends.
pub(crate) async fn serve_mcp(args: McpArgs) -> anyhow::Result<()> {
    let deletion = if args.allow_delete { Deletion::Allowed } else { Deletion::Forbidden };
    let service = McpService::new(args.server.client()?, deletion);
    serve_stdio(service).await.map_err(|error| anyhow!("{error}"))
}
