//! `tempmail completions`

use std::io::Write as _;
use std::process::{Command, Stdio};

use tempmail_tests::CommandOutput;

async fn script(shell: &str) -> String {
    CommandOutput::run(&["completions", shell], &[]).await.success().to_owned()
}

#[tokio::test]
async fn bash_completes_commands_and_arguments() {
    let script = script("bash").await;
    let complete = |words: &str, place: usize| {
        let probe = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={place}; _tempmail tempmail \"${{COMP_WORDS[{place}]}}\" ''; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        let mut bash = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(probe.as_bytes()).unwrap();
        String::from_utf8(bash.wait_with_output().unwrap().stdout).unwrap()
    };
    let offered =
        |words: &str, place: usize| complete(words, place).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(offered("tempmail ma", 1), ["mail"]);
    let commands = offered("tempmail mail ''", 2);
    for command in ["new", "wait", "code", "link", "read", "list", "delete"] {
        assert!(commands.iter().any(|offered| offered == command), "{command}: {commands:?}");
    }
    assert_eq!(offered("tempmail mail link --link-h", 3), ["--link-host"]);
    assert_eq!(offered("tempmail completions fi", 2), ["fish"]);
}

#[tokio::test]
async fn zsh_and_fish_have_scripts() {
    for (shell, start) in [("zsh", "#compdef tempmail"), ("fish", "# Print an optspec")] {
        let script = script(shell).await;
        assert!(script.starts_with(start), "{shell}: {}", script.lines().next().unwrap_or_default());
        assert!(["link-host", "since", "secure_account"].iter().all(|word| script.contains(word)), "{shell}");
    }
}

#[tokio::test]
async fn refuses_an_unknown_shell() {
    let refused = CommandOutput::run(&["completions", "tcsh"], &[]).await;
    assert!(refused.usage_error().contains("invalid value 'tcsh'"), "{}", refused.stderr);
}
