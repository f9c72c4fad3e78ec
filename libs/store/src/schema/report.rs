//! What a migration found of functions, views and triggers that were changed by hand, and what it could not do.

use std::fmt;

/// What `migrate` reports to the administrator.
#[derive(Debug, Default)]
pub struct MigrationReport {
    /// One for each object that deviates.
    pub findings: Vec<SchemaFinding>,
    /// Statements about roles and rights that are needed and that the login may not run, in order.
    pub refused: Vec<String>,
}

/// A function, view or trigger that differs from what a tempmail applied. Displayed as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFinding {
    /// Its kind and name, such as `function new_id(timestamp with time zone)`.
    pub object: String,
    /// How it differs.
    pub deviation: Deviation,
}

/// How an object differs from what was applied last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// Its definition was changed. It was replaced.
    Changed,
    /// It was dropped. It was created again.
    Dropped,
    /// A function that no tempmail created. It was not changed.
    Foreign,
}

impl fmt::Display for SchemaFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.deviation {
            Deviation::Changed => "was changed by hand, and is replaced by this version's",
            Deviation::Dropped => "was dropped by hand, and is created again as this version has it",
            Deviation::Foreign => "is not part of tempmail, and is not changed",
        };
        write!(formatter, "{} {what}", self.object)
    }
}
