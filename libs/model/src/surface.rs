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
}

impl DropInSurface {
    /// All of them, in the order in which a token shows them.
    pub const ALL: [Self; 3] = [Self::Mailpit, Self::MailHog, Self::Mailosaur];

    /// Names of those that former versions had. Tokens for them are listed and can be revoked, and work nowhere.
    pub const REMOVED: [&'static str; 1] = ["mailtm"];

    /// Its name in the interface, in settings and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mailpit => "mailpit",
            Self::MailHog => "mailhog",
            Self::Mailosaur => "mailosaur",
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
        for other in DropInSurface::REMOVED.into_iter().chain(["Mailpit"]) {
            assert_eq!(DropInSurface::from_name(other), None, "{other}");
        }
    }
}
