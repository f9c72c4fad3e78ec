//! `from` and `subject`: which messages match a long-poll.

use tempmail_store::MessageRow;

/// Substrings that the From header and the subject must contain, ignoring case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    from: Option<String>,
    subject: Option<String>,
}

impl Filter {
    /// A filter of the given parts; an empty part matches every message.
    pub(crate) fn new(from: Option<&str>, subject: Option<&str>) -> Self {
        let part = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_lowercase);
        Self { from: part(from), subject: part(subject) }
    }

    /// Whether every message matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.from.is_none() && self.subject.is_none()
    }

    /// Whether a message matches.
    pub(crate) fn matches(&self, message: &MessageRow) -> bool {
        contains(&message.from_text, self.from.as_deref())
            && contains(&message.subject, self.subject.as_deref())
    }
}

fn contains(text: &str, part: Option<&str>) -> bool {
    part.is_none_or(|part| text.to_lowercase().contains(part))
}

#[cfg(test)]
mod tests {
    use super::super::collected::tests::message;
    use super::*;

    #[test]
    fn ignores_case_and_requires_both_parts() {
        let mut mail = message(1);
        mail.from_text = "Ärzte <News@Shop.Example>".into();
        mail.subject = "Your CODE is 123".into();
        for (from, subject, expected) in [
            (None, None, true),
            (Some(""), Some(""), true),
            (Some("ärzte"), None, true),
            (Some("news@shop"), Some("code IS"), true),
            (Some("shop"), Some("other"), false),
            (Some("other"), Some("code"), false),
        ] {
            assert_eq!(Filter::new(from, subject).matches(&mail), expected, "{from:?} {subject:?}");
        }
    }
}
