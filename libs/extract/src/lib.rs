//! One-time codes and action links of a mail, and the text of HTML as a reader sees it.
//!
//! Pure: no I/O, no clock, no state. The same message always gives the same answer, in a time that is bounded
//! whatever the message is (`bounds`). What is found, and how that is measured: `docs/extraction.md`.
//!
//! A mail passes through these modules in turn:
//!
//! - `html` and `text` make a [`text::Shown`] of each `part`: what a reader sees, line by line, with its links, and
//!   with what is quoted or stands out.
//! - `words` finds the words that say what a number or a link is, in all languages at once.
//! - `code` takes what may be a code (`code::candidate`) and decides by what stands near it.
//! - `link` does so for links.

mod bounds;
mod code;
mod html;
mod link;
mod part;
mod steps;
mod text;
mod words;

pub use html::{ShownText, shown_text};

/// What is looked at: the decoded texts of one message.
///
/// Of the subject the first 1,000 characters count, of the text 256 KiB, of the HTML 1 MiB and the first 256 KiB
/// that it shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message<'a> {
    /// The subject, decoded.
    pub subject: &'a str,
    /// The text body.
    pub text: Option<&'a str>,
    /// The HTML body.
    pub html: Option<&'a str>,
    /// The domain of the author's address; links are compared with it.
    pub from_domain: Option<&'a str>,
}

/// What was found in a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extraction {
    /// The one-time codes, best first; at most 4, mostly one or none.
    pub codes: Vec<Code>,
    /// The action links, best first; at most 8, each address once.
    pub links: Vec<ActionLink>,
}

/// A one-time code: what proves a person or a device now.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// 4 to 12 of `[A-Za-z0-9-]`. Digits of any script are ASCII; what only groups digits is left out.
    pub code: String,
    /// From 0.5 to 0.99.
    pub confidence: f32,
    /// Where the evidence is best.
    pub source: Source,
    /// A short English sentence.
    pub reason: &'static str,
}

/// A link that completes what the mail is about.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionLink {
    /// Absolute http or https, as sent; at most 2,048 ASCII characters, without user info.
    pub url: String,
    /// What following it does.
    pub kind: LinkKind,
    /// The text of the link as it is shown, at most 200 characters; in a text body, the link itself.
    pub text: String,
    /// The host of the address, in lower case.
    pub host: String,
    /// Whether the host is of the same registrable domain as the author.
    pub host_matches_from: bool,
    /// From 0.5 to 0.99.
    pub confidence: f32,
    /// Where the link was found.
    pub source: Source,
    /// A short English sentence.
    pub reason: &'static str,
}

/// The part of a message where something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The subject.
    Subject,
    /// The text body.
    Text,
    /// The HTML body, as it is shown.
    Html,
}

/// What following an action link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// Confirms an address, an account, a registration or a request.
    Confirm,
    /// Sets a new password.
    ResetPassword,
    /// Signs in.
    SignIn,
    /// Accepts an invitation.
    AcceptInvitation,
    /// Unlocks an account.
    Unlock,
    /// Confirms that a subscription ends.
    ConfirmUnsubscribe,
    /// Secures an account after an alert: "this was not me".
    SecureAccount,
}

impl Source {
    /// The name in answers: `subject`, `text` or `html`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Text => "text",
            Self::Html => "html",
        }
    }
}

impl LinkKind {
    /// The name in answers, such as `reset_password`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::ResetPassword => "reset_password",
            Self::SignIn => "sign_in",
            Self::AcceptInvitation => "accept_invitation",
            Self::Unlock => "unlock",
            Self::ConfirmUnsubscribe => "confirm_unsubscribe",
            Self::SecureAccount => "secure_account",
        }
    }
}

/// Finds the codes and the action links of a message.
///
/// Deterministic, and bounded on any input: what exceeds a bound is not looked at.
#[must_use]
pub fn extract(message: &Message<'_>) -> Extraction {
    let parts = part::parts(message);
    Extraction {
        codes: code::find(&parts, message.from_domain),
        links: link::find(&parts, message.from_domain),
    }
}
