//! Credentials that requests present, and the expected decision on them.

/// Which credential a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// None: credentials are ignored.
    Open,
    /// A mailbox JWT as Bearer.
    Mailbox,
    /// A Pro token as Bearer, or nothing.
    OptionalPro,
    /// A Pro token or a Pro session as Bearer.
    Pro,
    /// A live token as `x-api-token`.
    Live,
    /// A live token as `x-api-token`, as `token` in the query, or as both.
    Stream,
}

/// Kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialKind {
    Jwt,
    Pro,
    Session,
    Live,
    /// A token that a live token minted for an address that no route is about.
    Minted,
    /// No credential of this installation.
    Junk,
    /// An empty value, which counts as none.
    Empty,
}

/// The tenant of a valid credential, or why it is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    A,
    B,
    /// Its tenant is suspended.
    Suspended,
    /// Expired.
    Expired,
    /// Revoked: the token itself, the token of a session, or a JWT by a password reset or the deletion of its mailbox.
    Revoked,
    /// None is needed.
    Anonymous,
}

/// The credentials of a request, by where they are.
#[derive(Debug, Clone)]
pub(super) struct PresentedCredentials {
    pub(super) name: String,
    pub(super) authorization: Option<(String, CredentialKind, Identity)>,
    pub(super) x_api_token: Option<(String, CredentialKind, Identity)>,
    /// `token` in the query.
    pub(super) token: Option<(String, CredentialKind, Identity)>,
}

/// Decision on the credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Admitted(Identity),
    /// Status and code.
    Rejected(u16, &'static str),
}

impl PresentedCredentials {
    /// No credential.
    pub(super) fn none(name: impl Into<String>) -> Self {
        Self { name: name.into(), authorization: None, x_api_token: None, token: None }
    }

    /// Adds an `Authorization` header.
    pub(super) fn authorization(mut self, value: &str, kind: CredentialKind, identity: Identity) -> Self {
        self.authorization = Some((value.to_owned(), kind, identity));
        self
    }

    /// Adds an `x-api-token` header.
    pub(super) fn x_api_token(mut self, value: &str, kind: CredentialKind, identity: Identity) -> Self {
        self.x_api_token = Some((value.to_owned(), kind, identity));
        self
    }

    /// Adds `token` in the query.
    pub(super) fn query(mut self, value: &str, kind: CredentialKind, identity: Identity) -> Self {
        self.token = Some((value.to_owned(), kind, identity));
        self
    }

    /// The rules of "Conventions" and "Who may read what" of the interface.
    pub(super) fn decide(&self, access: RouteAccess) -> Decision {
        use Decision::{Admitted, Rejected};
        // Only these are read.
        let sources: &[_] = match access {
            RouteAccess::Open => return Admitted(Identity::Anonymous),
            RouteAccess::Mailbox | RouteAccess::OptionalPro | RouteAccess::Pro => &[&self.authorization],
            RouteAccess::Live => &[&self.x_api_token],
            RouteAccess::Stream => &[&self.x_api_token, &self.token],
        };
        let presented: Vec<_> = sources
            .iter()
            .filter_map(|source| source.as_ref())
            .filter(|(_, kind, _)| *kind != CredentialKind::Empty)
            .collect();
        if presented.windows(2).any(|two| two[0].0 != two[1].0) {
            return Rejected(401, "invalid_token");
        }
        let Some((_, kind, identity)) = presented.first() else {
            return match access {
                RouteAccess::OptionalPro => Admitted(Identity::Anonymous),
                _ => Rejected(401, "authentication_required"),
            };
        };
        let is_accepted_kind = match access {
            RouteAccess::Mailbox => *kind == CredentialKind::Jwt,
            RouteAccess::OptionalPro => *kind == CredentialKind::Pro,
            RouteAccess::Pro => matches!(kind, CredentialKind::Pro | CredentialKind::Session),
            RouteAccess::Live | RouteAccess::Stream => {
                matches!(kind, CredentialKind::Live | CredentialKind::Minted)
            }
            RouteAccess::Open => true,
        };
        match identity {
            _ if !is_accepted_kind => Rejected(401, "invalid_token"),
            Identity::Revoked => Rejected(401, "invalid_token"),
            Identity::Expired if *kind == CredentialKind::Jwt => Rejected(401, "invalid_token"),
            Identity::Expired => Rejected(440, "session_expired"),
            Identity::Suspended => Rejected(403, "account_disabled"),
            Identity::A | Identity::B if *kind == CredentialKind::Minted => Rejected(404, "not_found"),
            Identity::A | Identity::B | Identity::Anonymous => Admitted(*identity),
        }
    }
}
