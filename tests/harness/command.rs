//! Runs commands of the real program to their end.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::binary::program;
use crate::fleet::Role;
use crate::postgres::Database;
use crate::{App, Fleet};

/// Exit code and output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Runs `tempmail` with these arguments and only these environment variables.
    ///
    /// # Panics
    /// The program can't be started.
    pub async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("waiting does not panic").expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Standard output of a successful command, without the final line break.
    ///
    /// # Panics
    /// The command failed, or wrote to standard error.
    pub fn success(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        self.stdout.strip_suffix('\n').expect("output ends with a line break")
    }

    /// The JSON output of a successful command.
    ///
    /// # Panics
    /// The command failed, or the output is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(self.success()).expect("the output is JSON")
    }

    /// The error message of a failed command, without the prefix `tempmail: `.
    ///
    /// # Panics
    /// The command did not fail, or the message has several lines.
    pub fn failure(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{}", self.stderr);
        let sentence = self.stderr.strip_prefix("tempmail: ").and_then(|text| text.strip_suffix('\n'));
        let sentence = sentence.expect("an error is one line with our prefix");
        assert!(!sentence.contains('\n'), "{sentence}");
        sentence
    }

    /// The first line about invalid arguments.
    ///
    /// # Panics
    /// The arguments are valid.
    pub fn usage_error(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        self.stderr.lines().next().expect("invalid arguments are reported")
    }
}

impl App {
    /// Runs `tempmail` with these arguments, separated by spaces, over the database of the test, with the
    /// login of `operator`.
    ///
    /// # Panics
    /// The program can't be started.
    pub async fn tempmail(&self, arguments: &str) -> CommandOutput {
        tempmail(self.database(), arguments).await
    }
}

impl Fleet {
    /// Runs `tempmail` with these arguments, separated by spaces, over the database of the test, with the
    /// login of `operator`.
    ///
    /// # Panics
    /// The program can't be started.
    pub async fn tempmail(&self, arguments: &str) -> CommandOutput {
        tempmail(self.database(), arguments).await
    }
}

async fn tempmail(database: &Database, arguments: &str) -> CommandOutput {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    CommandOutput::run(&arguments, &[("TEMPMAIL_POSTGRES__URL", &database.role_url(Role::Operator))]).await
}
