//! Commands of the real program that do one thing and end.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::binary::program;
use crate::postgres::Database;
use crate::{App, Fleet};

/// How a command ended, and what it wrote.
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
    /// Runs `tempmail` with these arguments in an environment of these variables alone.
    ///
    /// # Panics
    /// There is no such program.
    pub async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("waiting does not panic").expect("the program starts");
        let text = |octets| String::from_utf8(octets).expect("it writes UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What a command that did its work wrote to standard output, without the last line's end.
    ///
    /// # Panics
    /// It did not, or had more to say.
    pub fn success(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        self.stdout.strip_suffix('\n').expect("output ends with a line's end")
    }

    /// The JSON of a command that did its work.
    ///
    /// # Panics
    /// It did not, or wrote something else.
    pub fn json(&self) -> Value {
        serde_json::from_str(self.success()).expect("the output is JSON")
    }

    /// The sentence of a command that refused.
    ///
    /// # Panics
    /// It did not, or wrote more than one line.
    pub fn failure(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{}", self.stderr);
        let sentence = self.stderr.strip_prefix("tempmail: ").and_then(|text| text.strip_suffix('\n'));
        let sentence = sentence.expect("a refusal is a line of ours");
        assert!(!sentence.contains('\n'), "{sentence}");
        sentence
    }

    /// What is wrong with the arguments.
    ///
    /// # Panics
    /// Nothing is.
    pub fn usage_error(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        self.stderr.lines().next().expect("a misuse is told")
    }
}

impl App {
    /// Runs `tempmail` with these words as arguments over the database of the test.
    ///
    /// # Panics
    /// There is no such program.
    pub async fn tempmail(&self, arguments: &str) -> CommandOutput {
        tempmail(self.database(), arguments).await
    }
}

impl Fleet {
    /// Runs `tempmail` with these words as arguments over the database of the test.
    ///
    /// # Panics
    /// There is no such program.
    pub async fn tempmail(&self, arguments: &str) -> CommandOutput {
        tempmail(self.database(), arguments).await
    }
}

async fn tempmail(database: &Database, arguments: &str) -> CommandOutput {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    CommandOutput::run(&arguments, &[("TEMPMAIL_POSTGRES__URL", &database.url())]).await
}
