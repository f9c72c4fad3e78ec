//! What each group role may do: a list a role, of what its statements and the functions that they call touch.
//!
//! A role reads whole tables but where columns are named: then the others are secrets, or mail. What it updates is
//! always named. Postgres asks for the right to update one column of a row that is locked, so some columns are named
//! for the lock alone; changing these harms nothing.
//!
//! A right that a release does not need any more is taken away a release later: processes of the version before still
//! use it while `migrate` runs.

mod api;
mod ingest;
mod operator;
mod worker;

pub(super) use self::api::API;
pub(super) use self::ingest::INGEST;
pub(super) use self::operator::OPERATOR;
pub(super) use self::worker::WORKER;

/// The rights of a group role.
pub(super) struct Rights {
    /// At tables and views.
    pub(super) tables: &'static [TableRights],
    /// The functions that it may execute: those that it calls, and those that these call with its rights.
    pub(super) functions: &'static [&'static [&'static str]],
}

/// The rights of a group role at a table or view.
pub(super) struct TableRights {
    /// Its name, which needs no quoting.
    pub(super) table: &'static str,
    select: Select,
    insert: bool,
    /// Columns.
    update: &'static [&'static [&'static str]],
    delete: bool,
}

#[derive(Clone, Copy)]
enum Select {
    Nothing,
    All,
    Columns(&'static [&'static str]),
}

/// A right as the catalogue has it: the privilege, and the column that it is for, if it is not for the whole table.
pub(super) type Privilege = (String, Option<String>);

const fn on(table: &'static str) -> TableRights {
    TableRights { table, select: Select::Nothing, insert: false, update: &[], delete: false }
}

impl TableRights {
    const fn select(mut self) -> Self {
        self.select = Select::All;
        self
    }

    const fn select_only(mut self, columns: &'static [&'static str]) -> Self {
        self.select = Select::Columns(columns);
        self
    }

    const fn insert(mut self) -> Self {
        self.insert = true;
        self
    }

    const fn update(mut self, columns: &'static [&'static [&'static str]]) -> Self {
        self.update = columns;
        self
    }

    const fn delete(mut self) -> Self {
        self.delete = true;
        self
    }

    /// Each of them.
    pub(super) fn privileges(&self) -> impl Iterator<Item = Privilege> {
        let whole = |privilege: &str| (privilege.to_owned(), None);
        let select = match self.select {
            Select::Nothing => Vec::new(),
            Select::All => vec![whole("SELECT")],
            Select::Columns(columns) => columns.iter().map(|column| of_column("SELECT", column)).collect(),
        };
        let insert = self.insert.then(|| whole("INSERT"));
        let update = self.update.iter().flat_map(|columns| columns.iter());
        let update = update.map(|column| of_column("UPDATE", column));
        let delete = self.delete.then(|| whole("DELETE"));
        select.into_iter().chain(insert).chain(update).chain(delete)
    }
}

fn of_column(privilege: &str, column: &str) -> Privilege {
    (privilege.to_owned(), Some(column.to_owned()))
}

/// Columns of `domain` that the verification of custom domains changes (`libs/verification`), which `api`, `worker` and
/// `operator` run.
const CHECKED_DOMAIN: &[&str] = &[
    "verify_status",
    "failure_reason",
    "serves",
    "verified_at",
    "failed_checks",
    "txt_ok",
    "txt_result",
    "txt_seen",
    "mx_ok",
    "mx_result",
    "mx_seen",
    "next_check_at",
    "claimed_until",
];

/// Columns of `mailbox` that change when mailboxes are removed, as those of a domain that others lose.
const REMOVED_MAILBOX: &[&str] = &["local_part", "password_epoch", "removed_at", "held_until"];

/// The functions of a domain's verification.
const VERIFICATION_FUNCTIONS: &[&str] = &[
    "verify_custom_domain",
    "lock_domain_names",
    "overlaps_system_domain",
    "domains_overlap",
    "purge_owner",
    "purge_removed",
    "remove_mailboxes_of_domain",
    "wait_for_mail",
];
