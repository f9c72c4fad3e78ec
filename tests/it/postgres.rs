//! Postgres as an administrator runs it: behind a pooler, over TLS, with a full disk, slow, silent, and restored.

mod chaos;
mod connections;
mod dump;
mod full_disk;
mod pgbouncer;
mod recovery;
mod slow_commit;
