//! Arguments that say which mail.

use clap::ValueEnum;
use tempmail_client::{Feature, Scope};

/// Whose mail.
#[derive(Debug, clap::Args)]
pub(super) struct ScopeArgs {
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
    pub(super) fn scope(&self) -> Scope {
        match (&self.address, &self.domain) {
            (Some(address), _) => Scope::Address(address.clone()),
            (None, Some(domain)) => Scope::Domain(domain.clone()),
            (None, None) => Scope::All,
        }
    }
}

/// What a mail has.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum FeatureArg {
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
