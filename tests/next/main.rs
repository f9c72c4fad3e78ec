//! tempmail as of a next version that changes only the schema.

use std::process::ExitCode;

fn main() -> ExitCode {
    tempmail::command::run(&tempmail_next::next_schema())
}
