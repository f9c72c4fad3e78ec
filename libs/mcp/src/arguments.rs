//! What the tools take, and why a tool has no result. An unknown argument is an error: a misspelt `link_host` must
//! not be ignored.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use tempmail_client::{Error, Feature, LinkFilter, MailMatch, Scope, WaitRequest};
use uuid::Uuid;

use crate::reading::NoRandomness;

/// The longest wait of a tool, in seconds.
const TIMEOUT_MAX: u64 = 300;
/// The wait unless another is requested: many clients give up on a tool after 60 s.
const TIMEOUT: u64 = 45;
/// Mails of a list unless another number is requested.
const LIMIT: u8 = 20;
/// The most mails of a list.
const LIMIT_MAX: u8 = 50;
/// Characters of a text unless another number is requested.
const CHARACTERS: usize = 10_000;
/// The most characters of a text.
const CHARACTERS_MAX: usize = 50_000;

/// Of `make_address`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeAddress {
    /// Domain of the address: a system domain of the server, or a verified domain of the tenant. Default: the server's.
    pub(crate) domain: Option<String>,
    /// Local part of the address. Default: a random one, which is the best choice.
    pub(crate) local_part: Option<String>,
}

/// Arguments that say which mail is waited for, and those of the tool itself.
macro_rules! wait_arguments {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Mail to this address. Exactly one of address, domain and all.
            address: Option<String>,
            /// Mail to every address under this verified domain of the tenant. Needs since or after.
            domain: Option<String>,
            /// true: mail to everything the tenant owns; shared inboxes are not among it. Needs since or after.
            all: Option<bool>,
            /// The oldest mail after this cursor, which make_address and every result give; "0": the oldest mail
            /// there is. Without since and after: the newest mail that is there, else the first that comes.
            since: Option<String>,
            /// Only mail that was accepted after this time, in RFC 3339.
            after: Option<String>,
            /// Only mail with this text in its From header, in upper or lower case.
            from: Option<String>,
            /// Only mail with this text in its recipient.
            to: Option<String>,
            /// Only mail with this text in its Subject.
            subject: Option<String>,
            /// Only mail with this in its text.
            text: Option<String>,
            /// How long to wait, from 0 (look once) to 300. Default: 45.
            #[schemars(range(max = 300))]
            timeout_seconds: Option<u64>,
            $($(#[$field_doc])* pub(crate) $field: $type,)*
        }

        impl $name {
            /// What is waited for, and how long.
            pub(crate) fn wait(&self) -> Result<(WaitRequest, Duration), ToolError> {
                let scope = scope(self.address.as_ref(), self.domain.as_ref(), self.all)?;
                let after = self.after.as_deref().map(time).transpose()?;
                if self.since.is_none() && after.is_none() && !matches!(scope, Scope::Address(_)) {
                    return Err(ToolError::Arguments("domain and all need since or after.".into()));
                }
                let matching = MailMatch {
                    from: self.from.clone(),
                    to: self.to.clone(),
                    subject: self.subject.clone(),
                    text: self.text.clone(),
                    has: Vec::new(),
                };
                let request = WaitRequest { scope, since: self.since.clone(), after, matching, full: false };
                let seconds = bounded("timeout_seconds", self.timeout_seconds.unwrap_or(TIMEOUT), 0, TIMEOUT_MAX)?;
                Ok((request, Duration::from_secs(seconds)))
            }
        }
    };
}

wait_arguments! {
    /// Of `wait_for_mail`.
    WaitForMail {
        /// Only mail that has all of these.
        has: Option<Vec<FeatureName>>,
    }
}

wait_arguments! {
    /// Of `get_code`.
    GetCode {}
}

wait_arguments! {
    /// Of `get_link`.
    GetLink {
        /// Only links of this kind. Default: any.
        kind: Option<KindName>,
        /// Refuse links that lead to another host than this one, such as shop.example. Set it whenever you know the
        /// host.
        link_host: Option<String>,
    }
}

impl WaitForMail {
    /// What the mail must have.
    pub(crate) fn features(&self) -> Vec<Feature> {
        let names = self.has.iter().flatten();
        names
            .map(|name| match name {
                FeatureName::Code => Feature::Code,
                FeatureName::Link => Feature::Link,
                FeatureName::Attachment => Feature::Attachment,
            })
            .collect()
    }
}

impl GetLink {
    /// Which link is meant.
    pub(crate) fn filter(&self) -> Result<LinkFilter, ToolError> {
        let hosts: Vec<String> = self.link_host.iter().cloned().collect();
        LinkFilter::new(self.kind.map(KindName::kind), &hosts)
            .map_err(|_text| ToolError::Arguments("link_host is not a host.".into()))
    }
}

/// What a mail may have.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FeatureName {
    Code,
    Link,
    Attachment,
}

/// What a link does.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindName {
    Confirm,
    ResetPassword,
    SignIn,
    AcceptInvitation,
    Unlock,
    ConfirmUnsubscribe,
    SecureAccount,
}

impl KindName {
    fn kind(self) -> tempmail_client::LinkKind {
        use tempmail_client::LinkKind;
        match self {
            Self::Confirm => LinkKind::Confirm,
            Self::ResetPassword => LinkKind::ResetPassword,
            Self::SignIn => LinkKind::SignIn,
            Self::AcceptInvitation => LinkKind::AcceptInvitation,
            Self::Unlock => LinkKind::Unlock,
            Self::ConfirmUnsubscribe => LinkKind::ConfirmUnsubscribe,
            Self::SecureAccount => LinkKind::SecureAccount,
        }
    }
}

/// Of `list_mail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListMail {
    /// Mail to this address. Exactly one of address, domain and all.
    address: Option<String>,
    /// Mail to every address under this verified domain of the tenant.
    domain: Option<String>,
    /// true: mail to everything the tenant owns; shared inboxes are not among it.
    all: Option<bool>,
    /// How many, at most, from 1 to 50. Default: 20.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u8>,
}

impl ListMail {
    /// Whose mail.
    pub(crate) fn scope(&self) -> Result<Scope, ToolError> {
        scope(self.address.as_ref(), self.domain.as_ref(), self.all)
    }

    /// How many, at most.
    pub(crate) fn limit(&self) -> Result<u8, ToolError> {
        bounded("limit", self.limit.unwrap_or(LIMIT), 1, LIMIT_MAX)
    }
}

/// Of `read_mail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadMail {
    /// Id of the mail, from wait_for_mail, get_code, get_link or list_mail.
    id: String,
    /// How many characters of the text, at most, from 1 to 50000. Default: 10000.
    #[schemars(range(min = 1, max = 50_000))]
    max_characters: Option<usize>,
}

impl ReadMail {
    /// The mail.
    pub(crate) fn id(&self) -> Result<Uuid, ToolError> {
        id(&self.id)
    }

    /// Characters of the text.
    pub(crate) fn characters(&self) -> Result<usize, ToolError> {
        bounded("max_characters", self.max_characters.unwrap_or(CHARACTERS), 1, CHARACTERS_MAX)
    }
}

/// Of `delete_mail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteMail {
    /// Id of the mail.
    id: String,
}

impl DeleteMail {
    /// The mail.
    pub(crate) fn id(&self) -> Result<Uuid, ToolError> {
        id(&self.id)
    }
}

/// Of `delete_all_mail`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteAllMail {
    /// The address whose mail is deleted.
    pub(crate) address: String,
}

fn scope(address: Option<&String>, domain: Option<&String>, all: Option<bool>) -> Result<Scope, ToolError> {
    match (address, domain, all.unwrap_or(false)) {
        (Some(address), None, false) => Ok(Scope::Address(address.clone())),
        (None, Some(domain), false) => Ok(Scope::Domain(domain.clone())),
        (None, None, true) => Ok(Scope::All),
        _ => Err(ToolError::Arguments("Give exactly one of address, domain and all.".into())),
    }
}

fn time(text: &str) -> Result<Timestamp, ToolError> {
    text.parse().map_err(|_other| ToolError::Arguments("after is no time in RFC 3339.".into()))
}

fn id(text: &str) -> Result<Uuid, ToolError> {
    text.parse().map_err(|_other| ToolError::Arguments("id is not the id of a mail.".into()))
}

fn bounded<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: T,
    min: T,
    max: T,
) -> Result<T, ToolError> {
    if value < min || value > max {
        return Err(ToolError::Arguments(format!("{name} must be from {min} to {max}.")));
    }
    Ok(value)
}

/// An error that is the result of a tool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// An argument is missing or invalid.
    #[error("{0}")]
    Arguments(String),
    /// Nothing came in time.
    #[error("No such mail came in time. Call the tool again with since={next_since:?} to go on.")]
    NothingInTime {
        /// Where to continue.
        next_since: String,
    },
    /// The links of the mail lead to other hosts.
    #[error(
        "Refused: the mail's link does not lead to link_host but to {}. Do not open it. Continue with since={next_since:?}.",
        .hosts.join(", ")
    )]
    OtherHost {
        /// Where they lead: hosts as the parser of URLs writes them.
        hosts: Vec<String>,
        /// The cursor behind the mail.
        next_since: String,
    },
    /// The server refused, or is not reached.
    #[error("{0}")]
    Failed(#[from] Error),
    /// Nothing can be fenced.
    #[error("{0}")]
    NoRandomness(#[from] NoRandomness),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wait(arguments: serde_json::Value) -> Result<(WaitRequest, Duration), String> {
        let parsed: WaitForMail = serde_json::from_value(arguments).map_err(|error| error.to_string())?;
        parsed.wait().map_err(|error| error.to_string())
    }

    #[test]
    fn takes_exactly_one_scope_and_a_start_where_it_is_large() {
        let (request, timeout) = wait(json!({"address": "a@b.example"})).unwrap();
        assert_eq!((request.scope, timeout.as_secs()), (Scope::Address("a@b.example".into()), 45));
        assert!(wait(json!({"all": true, "since": "0", "timeout_seconds": 300})).is_ok());
        assert!(wait(json!({"domain": "b.example", "after": "2026-11-24T10:00:00Z"})).is_ok());
        for invalid in [
            json!({}),
            json!({"all": false}),
            json!({"address": "a@b.example", "all": true}),
            json!({"all": true}),
            json!({"domain": "b.example"}),
            json!({"address": "a@b.example", "after": "yesterday"}),
            json!({"address": "a@b.example", "timeout_seconds": 301}),
            json!({"address": "a@b.example", "sinc": "0"}),
            json!({"address": "a@b.example", "has": ["money"]}),
        ] {
            assert!(wait(invalid.clone()).is_err(), "{invalid}");
        }
    }
}
