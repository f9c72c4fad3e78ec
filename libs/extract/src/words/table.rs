//! The table of words, read once from `words/*.txt`.

use unicode_normalization::UnicodeNormalization;

use crate::text::chars::fold;

/// What a phrase says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// Names a one-time code by itself: `verification code`.
    Otp,
    /// Names a code of some kind: `code`.
    Code,
    /// Names a code that confirms a person, or else a booking: `confirmation code`.
    ConfirmCode,
    /// A code that proves nobody: `promo code`, `postcode`.
    OtherCode,
    /// Says that the mail is about signing in or proving oneself: `sign in`.
    Auth,
    /// Says that something is confirmed, which may also be an order.
    Confirm,
    /// Names another number: `order`, `phone`.
    Number,
    /// Digits, with no name of their own: `the number`.
    Digits,
    /// Says that the mail is about a sale, a booking or a meeting.
    Trade,
    /// Says that a code is an earlier one or no longer valid.
    Void,
    /// Says that what stands right after it is replaced: `instead of`.
    Instead,
    /// Codes for later: `backup codes`.
    Backup,
    /// A code for later, or one that was asked for in order to recover an account: `recovery code`.
    RecoveryCode,
    /// Joins a class, a game or the like, which takes a code that proves nobody: `join your class`.
    Join,
    /// A unit that follows a number.
    Unit,
    /// A currency, before or after a number.
    Currency,
    /// What is said of one-time codes: `expires in`.
    Hint,
    /// Says that nobody else may have it, or that somebody else may have asked for it: `do not share`.
    Secret,
    /// Asks to enter something, so that what follows is a code even where no word names it.
    Enter,
    QuoteWrote,
    QuoteHeading,
    QuoteFrom,
    QuoteSubject,
    LinkConfirm,
    LinkReset,
    LinkSignIn,
    LinkAccept,
    LinkUnlock,
    LinkUnsubscribe,
    LinkSecure,
    /// An alert: `new sign-in`, `password was changed`.
    Alert,
    /// What completes nothing: `view order`, `privacy`.
    LinkOther,
    /// Says nothing by itself: `click here`.
    LinkGeneric,
    /// Declines what another link accepts.
    LinkDecline,
}

/// The languages, by the file of each.
const FILES: &[&str] = &[
    include_str!("../../words/ar.txt"),
    include_str!("../../words/bg.txt"),
    include_str!("../../words/bn.txt"),
    include_str!("../../words/ca.txt"),
    include_str!("../../words/cs.txt"),
    include_str!("../../words/da.txt"),
    include_str!("../../words/de.txt"),
    include_str!("../../words/el.txt"),
    include_str!("../../words/en.txt"),
    include_str!("../../words/es.txt"),
    include_str!("../../words/fa.txt"),
    include_str!("../../words/fi.txt"),
    include_str!("../../words/fr.txt"),
    include_str!("../../words/he.txt"),
    include_str!("../../words/hi.txt"),
    include_str!("../../words/hr.txt"),
    include_str!("../../words/hu.txt"),
    include_str!("../../words/id.txt"),
    include_str!("../../words/it.txt"),
    include_str!("../../words/ja.txt"),
    include_str!("../../words/ko.txt"),
    include_str!("../../words/lt.txt"),
    include_str!("../../words/more.txt"),
    include_str!("../../words/ms.txt"),
    include_str!("../../words/nb.txt"),
    include_str!("../../words/nl.txt"),
    include_str!("../../words/pl.txt"),
    include_str!("../../words/pt.txt"),
    include_str!("../../words/ro.txt"),
    include_str!("../../words/ru.txt"),
    include_str!("../../words/sk.txt"),
    include_str!("../../words/sr.txt"),
    include_str!("../../words/sv.txt"),
    include_str!("../../words/th.txt"),
    include_str!("../../words/tr.txt"),
    include_str!("../../words/uk.txt"),
    include_str!("../../words/vi.txt"),
    include_str!("../../words/zh.txt"),
];

/// The names of classes in the files.
const NAMES: &[(&str, Class)] = &[
    ("otp", Class::Otp),
    ("code", Class::Code),
    ("confirm-code", Class::ConfirmCode),
    ("other-code", Class::OtherCode),
    ("auth", Class::Auth),
    ("confirm", Class::Confirm),
    ("number", Class::Number),
    ("digits", Class::Digits),
    ("trade", Class::Trade),
    ("void", Class::Void),
    ("instead", Class::Instead),
    ("backup", Class::Backup),
    ("recovery-code", Class::RecoveryCode),
    ("join", Class::Join),
    ("unit", Class::Unit),
    ("currency", Class::Currency),
    ("hint", Class::Hint),
    ("secret", Class::Secret),
    ("enter", Class::Enter),
    ("quote-wrote", Class::QuoteWrote),
    ("quote-heading", Class::QuoteHeading),
    ("quote-from", Class::QuoteFrom),
    ("quote-subject", Class::QuoteSubject),
    ("link-confirm", Class::LinkConfirm),
    ("link-reset", Class::LinkReset),
    ("link-sign-in", Class::LinkSignIn),
    ("link-accept", Class::LinkAccept),
    ("link-unlock", Class::LinkUnlock),
    ("link-unsubscribe", Class::LinkUnsubscribe),
    ("link-secure", Class::LinkSecure),
    ("alert", Class::Alert),
    ("link-other", Class::LinkOther),
    ("link-decline", Class::LinkDecline),
    ("link-generic", Class::LinkGeneric),
];

/// Groups of classes.
pub(super) const GROUPS: usize = 6;

impl Class {
    /// The group of a class: names of numbers, what a mail is about, quotations, links, entering, joining.
    pub(super) fn group(self) -> usize {
        match self {
            Self::Otp
            | Self::Code
            | Self::ConfirmCode
            | Self::OtherCode
            | Self::Number
            | Self::Digits
            | Self::Void
            | Self::Instead
            | Self::Backup
            | Self::RecoveryCode
            | Self::Unit
            | Self::Currency => 0,
            Self::Auth | Self::Confirm | Self::Trade | Self::Hint | Self::Secret => 1,
            Self::QuoteWrote | Self::QuoteHeading | Self::QuoteFrom | Self::QuoteSubject => 2,
            Self::LinkConfirm
            | Self::LinkReset
            | Self::LinkSignIn
            | Self::LinkAccept
            | Self::LinkUnlock
            | Self::LinkUnsubscribe
            | Self::LinkSecure
            | Self::Alert
            | Self::LinkOther
            | Self::LinkGeneric
            | Self::LinkDecline => 3,
            Self::Enter => 4,
            Self::Join => 5,
        }
    }

    /// Whether it names a code that may be a one-time code.
    pub(crate) fn names_code(self) -> bool {
        matches!(self, Self::Otp | Self::Code | Self::ConfirmCode)
    }

    /// Whether it is about quotations.
    pub(crate) fn is_of_quotation(self) -> bool {
        matches!(self, Self::QuoteWrote | Self::QuoteHeading | Self::QuoteFrom | Self::QuoteSubject)
    }
}

/// A phrase as it is looked up.
pub(super) struct Phrase {
    /// Folded.
    pub(super) text: String,
    pub(super) class: Class,
    /// Whether a word may begin before it, or go on after it.
    pub(super) open_start: bool,
    open_end: bool,
    /// The word with its accents, where they tell it from words of other languages.
    exact: Option<String>,
    /// The word in capitals, where it is an abbreviation that is a word of other languages in small letters.
    capitals: Option<String>,
}

/// Words that Hebrew and Arabic write together with the one that follows.
const PROCLITICS: &str = "והבלכמשفبكلاولس";

impl Phrase {
    fn parse(text: &str, class: Class) -> Self {
        let (open_start, open_end) = (text.starts_with('*'), text.ends_with('*'));
        let exact = text.strip_prefix('=').map(composed);
        let capitals = text.strip_prefix('^').map(str::to_owned);
        let text = fold(text.trim_matches(['*', '=', '^'])).text.trim().to_owned();
        Self { text, class, open_start, open_end, exact, capitals }
    }

    fn is_strict(&self) -> bool {
        self.exact.is_some() || self.capitals.is_some()
    }

    /// Whether what was written is the phrase also by its accents, where they count.
    pub(super) fn is_written(&self, written: &str) -> bool {
        self.exact.as_ref().is_none_or(|exact| *exact == composed(written))
            && self.capitals.as_ref().is_none_or(|capitals| capitals == written)
    }

    /// Whether the phrase that was found there is one of whole words.
    pub(super) fn stands_at(&self, text: &str, start: usize, end: usize) -> bool {
        let first = text[start..].chars().next().unwrap_or(' ');
        let last = text[..end].chars().next_back().unwrap_or(' ');
        let starts = self.open_start || !has_spaces(first) || {
            let before = &text[..start];
            let glued =
                before.chars().rev().take_while(|c| c.is_alphanumeric() && has_spaces(*c)).take(4).count();
            glued == 0 || (glued < 4 && before.chars().rev().take(glued).all(is_proclitic))
        };
        let ends = self.open_end
            || !has_spaces(last)
            || is_suffixed(last)
            || !text[end..]
                .chars()
                .next()
                .is_some_and(|c| c.is_alphanumeric() && has_spaces(c) && !c.is_ascii_digit());
        starts && ends
    }

    /// The whole words that the phrase is in, where they may go on.
    pub(super) fn extent(&self, text: &str, start: usize, end: usize) -> (usize, usize) {
        let of_word = |c: &char| c.is_alphanumeric() && has_spaces(*c);
        let before =
            text[..start].chars().rev().take(WORD_MAX).take_while(of_word).map(char::len_utf8).sum::<usize>();
        let after = text[end..].chars().take(WORD_MAX).take_while(of_word).map(char::len_utf8).sum::<usize>();
        let first = text[start..].chars().next().unwrap_or(' ');
        let last = text[..end].chars().next_back().unwrap_or(' ');
        let start = if self.open_start && has_spaces(first) { start - before } else { start };
        let end = if self.open_end && has_spaces(last) { end + after } else { end };
        (start, end)
    }
}

/// Characters of a word beyond a phrase in it.
const WORD_MAX: usize = 30;

fn composed(text: &str) -> String {
    text.to_lowercase().nfc().collect()
}

pub(super) fn is_proclitic(c: char) -> bool {
    !c.is_ascii() && PROCLITICS.contains(c)
}

/// Whether a script puts spaces between words.
pub(super) fn has_spaces(c: char) -> bool {
    c.is_alphanumeric()
        && !matches!(c,
            // Thai, Lao, Burmese, Khmer; kana, Han and their extensions.
            '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
            | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}'
            // Hangul, also as its letters after folding: particles follow without a space, compounds are written
            // together.
            | '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7AF}')
}

/// Whether words of the script take endings without a space: Arabic and Hebrew, and the scripts of India.
fn is_suffixed(c: char) -> bool {
    matches!(c, '\u{0590}'..='\u{06FF}' | '\u{0900}'..='\u{0DFF}' | '\u{10A0}'..='\u{10FF}' | '\u{0530}'..='\u{058F}')
}

/// Reads the table.
pub(super) fn phrases() -> Vec<Phrase> {
    let mut phrases = Vec::new();
    for line in FILES.iter().flat_map(|file| file.lines()) {
        let Some((name, list)) = line.split_once(':') else { continue };
        let class = NAMES.iter().find(|(of, _)| *of == name.trim()).map(|(_, class)| *class);
        let Some(class) = class.filter(|_| !line.starts_with('#')) else { continue };
        let list = list.split(',').map(str::trim).filter(|phrase| !phrase.is_empty());
        phrases.extend(list.map(|phrase| Phrase::parse(phrase, class)));
    }
    // Of a phrase that counts as it is and only with its accents or capitals, the former stays.
    phrases.sort_by(|a, b| (&a.text, a.class, a.is_strict()).cmp(&(&b.text, b.class, b.is_strict())));
    phrases.dedup_by(|a, b| {
        let is_same = a.text == b.text && a.class == b.class && !b.is_strict();
        if is_same && !a.is_strict() {
            b.open_start |= a.open_start;
            b.open_end |= a.open_end;
        }
        is_same
    });
    phrases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in FILES.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#')) {
            if line.trim().is_empty() {
                continue;
            }
            let name = line.split_once(':').map(|(name, _)| name.trim());
            assert!(NAMES.iter().any(|(known, _)| Some(*known) == name), "{line}");
        }
        assert!(phrases().iter().all(|phrase| phrase.text.len() >= 2), "no phrase is a single letter");
    }
}
