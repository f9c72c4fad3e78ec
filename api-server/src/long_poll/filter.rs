//! `from` and `subject`: which messages a long-poll counts.

use tempmail_store::MessageRow;

/// Substrings that the From header and the subject must contain, whatever their case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    from: Option<String>,
    subject: Option<String>,
}

impl Filter {
    /// A filter of the given parts; an empty text is in everything.
    pub(crate) fn new(from: Option<&str>, subject: Option<&str>) -> Self {
        let part = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_lowercase);
        Self { from: part(from), subject: part(subject) }
    }

    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.from.is_none() && self.subject.is_none()
    }

    /// Whether a message counts.
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
    fn case_does_not_matter_and_both_must_match() {
        let mut mail = message(1);
        mail.from_text = "Ärzte <News@Shop.Example>".into();
        mail.subject = "Your CODE is 123".into();
        for (from, subject, expected) in [
            (None, None, true),
            (Some(""), Some(""), true),
            (Some("ärzte"), None, true),
            (Some("news@shop"), Some("code IS"), true),
            (Some("shop"), Some("other"), false),
            (Some("nobody"), Some("code"), false),
        ] {
            assert_eq!(Filter::new(from, subject).matches(&mail), expected, "{from:?} {subject:?}");
        }
    }
}
