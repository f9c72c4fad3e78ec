//! What the whole message is about, as far as codes are concerned.

use crate::Source;
use crate::part::Part;
use crate::words::Class;

/// Octets of a mail that has no room for more than its code.
const TERSE_MAX: usize = 240;

/// Evidence of the whole message.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    /// Whether it names a one-time code.
    pub(super) has_otp: bool,
    /// Whether it names any code.
    pub(super) has_code: bool,
    /// Whether it is about signing in or proving oneself.
    pub(super) has_auth: bool,
    /// Whether it confirms something.
    pub(super) has_confirm: bool,
    /// Whether its subject is about a code or signing in.
    pub(super) subject_is_about_code: bool,
    /// Whether its subject is about signing in or proving oneself.
    pub(super) subject_is_about_auth: bool,
    /// Whether its subject names a code.
    pub(super) subject_names_code: bool,
    /// Whether it says what is said of one-time codes.
    pub(super) has_hint: bool,
    /// Whether it says that a code is secret.
    pub(super) has_secret: bool,
    /// Whether it is about a sale, a booking or a meeting.
    pub(super) has_trade: bool,
    pub(super) subject_is_trade: bool,
    /// Whether it names earlier codes or codes for later.
    pub(super) has_earlier_codes: bool,
    /// Whether it has a unit, such as that of the minutes that a code is valid for.
    pub(super) has_unit: bool,
    /// Whether nothing but a few words is shown.
    pub(super) is_terse: bool,
    /// Words of the author's domain, in capitals.
    pub(super) names: Vec<String>,
}

impl Context {
    pub(super) fn of(parts: &[Part], from_domain: Option<&str>) -> Self {
        let mut context = Self::default();
        let domain =
            from_domain.unwrap_or_default().chars().take(255).collect::<String>().to_ascii_uppercase();
        context.names = domain.split(['.', '-']).filter(|name| name.len() > 3).map(str::to_owned).collect();
        let lengths = parts.iter().map(|part| part.shown.text.len());
        context.is_terse = lengths.max().is_some_and(|longest| longest < TERSE_MAX);
        for part in parts {
            let is_subject = part.source == Source::Subject;
            for hit in part.hits.iter().filter(|hit| !part.shown.is_quoted(hit.start)) {
                match hit.class {
                    Class::Otp => context.has_otp = true,
                    Class::Code | Class::ConfirmCode => context.has_code = true,
                    Class::Auth => {
                        context.has_auth = true;
                        context.subject_is_about_auth |= is_subject;
                    }
                    Class::Confirm | Class::LinkConfirm => context.has_confirm = true,
                    Class::Hint => context.has_hint = true,
                    Class::Secret => {
                        context.has_hint = true;
                        context.has_secret = true;
                    }
                    Class::Trade | Class::OtherCode => {
                        context.has_trade = true;
                        context.subject_is_trade |= is_subject;
                    }
                    Class::Void | Class::Backup | Class::RecoveryCode => context.has_earlier_codes = true,
                    Class::Unit => context.has_unit = true,
                    _ => {}
                }
                context.subject_names_code |= is_subject && hit.class.names_code();
                context.subject_is_about_code |= is_subject
                    && matches!(
                        hit.class,
                        Class::Otp | Class::Code | Class::ConfirmCode | Class::Auth | Class::Confirm
                    );
            }
        }
        context
    }

    /// Whether anything says what codes are for, apart from a word for a code.
    pub(super) fn is_about_proof(&self) -> bool {
        self.has_auth || self.has_otp || self.has_confirm || self.has_hint || self.subject_names_code
    }

    /// Whether a recovery code is asked for now, rather than one to be kept for later: it lapses, or must not be shared.
    pub(super) fn recovers_now(&self) -> bool {
        (self.has_hint && self.has_unit) || self.has_secret
    }

    /// Whether a code that confirms something is a one-time code, rather than that of a booking.
    pub(super) fn confirms_person(&self) -> bool {
        let is_named = self.subject_names_code && !self.subject_is_trade;
        let is_hinted = (self.has_secret || (self.has_auth && self.has_hint)) && !self.subject_is_trade;
        is_named || is_hinted || self.subject_is_about_auth || self.has_otp || !self.has_trade
    }
}
