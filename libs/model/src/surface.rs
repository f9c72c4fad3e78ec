//! The drop-in surfaces: interfaces of other services, which their clients reach without changes.

/// A drop-in surface. Only tokens that were created for it are accepted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropInSurface {
    /// Mailpit's API, version 1.
    Mailpit,
    /// MailHog's API, versions 1 and 2.
    MailHog,
    /// Mailosaur's API.
    Mailosaur,
    /// mail.tm's API.
    MailTm,
}

impl DropInSurface {
    /// All of them, in the order in which a token shows them.
    pub const ALL: [Self; 4] = [Self::Mailpit, Self::MailHog, Self::Mailosaur, Self::MailTm];

    /// Its name in the interface, in settings and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mailpit => "mailpit",
            Self::MailHog => "mailhog",
            Self::Mailosaur => "mailosaur",
            Self::MailTm => "mailtm",
        }
    }

    /// The surface of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_names_only() {
        for surface in DropInSurface::ALL {
            assert_eq!(DropInSurface::from_name(surface.as_str()), Some(surface));
        }
        assert_eq!(DropInSurface::from_name("Mailpit"), None);
    }
}
