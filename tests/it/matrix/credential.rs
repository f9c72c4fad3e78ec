//! What may be presented, and what a door says to it.

/// Which credential a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// None: whatever is presented is not looked at.
    Open,
    /// A mailbox JWT as Bearer.
    Mailbox,
    /// A Pro token as Bearer, or nothing.
    MaybePro,
    /// A Pro token or a Pro session as Bearer.
    Pro,
    /// A live token as `x-api-token`.
    Live,
    /// A live token as `x-api-token`, as `token` in the query, or as both.
    Stream,
}

/// What a text in a header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Jwt,
    Pro,
    Session,
    Live,
    /// Nothing that was ever made here.
    Junk,
    /// A field without a value, which is as none.
    Empty,
}

/// Whose it is, if it is good, or what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    A,
    B,
    /// Of a tenant that is suspended.
    Suspended,
    /// Past its own time.
    Expired,
    /// Revoked; of a session, its token; of a JWT, the password was reset or the mailbox deleted.
    Revoked,
    /// Nobody, where nothing needs to be presented.
    Nobody,
}

/// What a request carries.
#[derive(Debug, Clone)]
pub(super) struct Presented {
    pub(super) name: String,
    pub(super) authorization: Option<(String, Kind, Who)>,
    pub(super) x_api_token: Option<(String, Kind, Who)>,
    /// `token` in the query.
    pub(super) token: Option<(String, Kind, Who)>,
}

/// What becomes of a request at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Admitted(Who),
    /// Status and code.
    Refused(u16, &'static str),
}

impl Presented {
    /// The rules of "Conventions" and "Who may read what".
    pub(super) fn verdict(&self, door: Door) -> Verdict {
        use Verdict::{Admitted, Refused};
        // Each door looks at its own places only.
        let places: &[_] = match door {
            Door::Open => return Admitted(Who::Nobody),
            Door::Mailbox | Door::MaybePro | Door::Pro => &[&self.authorization],
            Door::Live => &[&self.x_api_token],
            Door::Stream => &[&self.x_api_token, &self.token],
        };
        let presented: Vec<_> = places
            .iter()
            .filter_map(|place| place.as_ref())
            .filter(|(_, kind, _)| *kind != Kind::Empty)
            .collect();
        if presented.windows(2).any(|two| two[0].0 != two[1].0) {
            return Refused(401, "invalid_token");
        }
        let Some((_, kind, who)) = presented.first() else {
            return match door {
                Door::MaybePro => Admitted(Who::Nobody),
                _ => Refused(401, "authentication_required"),
            };
        };
        let right_kind = match door {
            Door::Mailbox => *kind == Kind::Jwt,
            Door::MaybePro => *kind == Kind::Pro,
            Door::Pro => matches!(kind, Kind::Pro | Kind::Session),
            Door::Live | Door::Stream => *kind == Kind::Live,
            Door::Open => true,
        };
        match who {
            _ if !right_kind => Refused(401, "invalid_token"),
            Who::Revoked => Refused(401, "invalid_token"),
            Who::Expired if *kind == Kind::Jwt => Refused(401, "invalid_token"),
            Who::Expired => Refused(440, "session_expired"),
            Who::Suspended => Refused(403, "account_disabled"),
            Who::A | Who::B | Who::Nobody => Admitted(*who),
        }
    }
}
