//! Which database the commands are about, and what keeps them from it.

use tempmail_tests::port::free_port;
use tempmail_tests::{App, CommandOutput};

const COMMANDS: &[&[&str]] =
    &[&["tenant", "list"], &["token", "list", "harbour"], &["system-domain", "list"]];

#[tokio::test(flavor = "multi_thread")]
async fn connects_by_flag_environment_or_file() {
    let app = App::start().await;
    let url = app.database().url();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.yaml");
    std::fs::write(&file, format!("postgres:\n  url: \"{url}\"\n")).unwrap();
    let file = file.to_str().unwrap();
    for command in COMMANDS {
        let with = |more: &[&'static str]| [*command, more].concat();
        let by_environment = CommandOutput::run(&with(&[]), &[("TEMPMAIL_POSTGRES__URL", &url)]).await;
        by_environment.success();
        for (flag, value) in [("--postgres-url", url.as_str()), ("--config", file)] {
            let mut arguments: Vec<&str> = command.to_vec();
            arguments.extend([flag, value]);
            assert_eq!(
                CommandOutput::run(&arguments, &[]).await.success(),
                by_environment.success(),
                "{flag}"
            );
            let first: Vec<&str> = [&command[..1], &[flag, value][..], &command[1..]].concat();
            assert_eq!(
                CommandOutput::run(&first, &[]).await.success(),
                by_environment.success(),
                "{flag} first"
            );
        }
        // The flag goes over the environment.
        let elsewhere = [("TEMPMAIL_POSTGRES__URL", "postgres://127.0.0.1:1/none")];
        let mut arguments: Vec<&str> = command.to_vec();
        arguments.extend(["--postgres-url", &url]);
        CommandOutput::run(&arguments, &elsewhere).await.success();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explains_how_to_name_the_database() {
    let home = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let refused = CommandOutput::run(command, &[("HOME", home.path().to_str().unwrap())]).await;
        for way in ["--data-dir", "--postgres-url", "TEMPMAIL_POSTGRES__URL"] {
            assert!(refused.failure().contains(way), "{}", refused.stderr);
        }
    }
    let path = home.path().to_str().unwrap();
    let refused = CommandOutput::run(&["tenant", "list", "--data-dir", path], &[]).await;
    let expected = format!(
        "no `tempmail up` is running with the data directory {path}: no Postgres runs in {path}/postgres"
    );
    assert_eq!(refused.failure(), expected);
    let both = ["tenant", "list", "--data-dir", path, "--postgres-url", "postgres://a/b"];
    CommandOutput::run(&both, &[]).await.usage_error();
    let refused = CommandOutput::run(&["tenant", "list", "--postgres-url", "nonsense"], &[]).await;
    assert_eq!(refused.failure(), "the database URL is not a Postgres URL");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_schema_of_another_version() {
    let app = App::start().await;
    let url = app.database().url();
    for (change, expected) in [
        ("UPDATE schema_object SET version = 0", "the schema is at version 0"),
        (
            "WITH newer AS (
                 UPDATE _sqlx_migrations SET version = 9999
                 WHERE version = (SELECT max(version) FROM _sqlx_migrations))
             UPDATE schema_compatibility SET lowest_version = 9999",
            "use a newer tempmail",
        ),
        ("DELETE FROM _sqlx_migrations", "run `tempmail migrate`"),
        ("DROP TABLE _sqlx_migrations", "the schema is at version 0"),
    ] {
        sqlx::query(change).execute(&app.pool).await.unwrap();
        for command in COMMANDS {
            let refused = CommandOutput::run(command, &[("TEMPMAIL_POSTGRES__URL", &url)]).await;
            assert!(refused.failure().contains(expected), "{}", refused.stderr);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_an_unavailable_database() {
    let url = format!("postgres://tempmail:hush@{}/tempmail", free_port());
    let away = CommandOutput::run(&["tenant", "list"], &[("TEMPMAIL_POSTGRES__URL", &url)]).await;
    let sentence = away.failure();
    assert!(sentence.starts_with("Postgres can't be reached: no connection to "), "{sentence}");
    assert!(sentence.ends_with(": check that it is running and that the URL is right"), "{sentence}");

    let app = App::start().await;
    let url = app.database().url();
    let unknown = url.replace("@localhost/", "@localhost/no");
    let refused = CommandOutput::run(&["tenant", "list"], &[("TEMPMAIL_POSTGRES__URL", &unknown)]).await;
    assert!(refused.failure().contains("does not exist"), "{}", refused.stderr);
    let password = url.split_once("://tempmail:").unwrap().1.split_once('@').unwrap().0.to_owned();
    let wrong = url.replace(&password, "hush");
    let refused = CommandOutput::run(&["tenant", "list"], &[("TEMPMAIL_POSTGRES__URL", &wrong)]).await;
    assert!(refused.failure().contains("password authentication failed"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("hush"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_a_well_formed_help() {
    let help = CommandOutput::run(&["--help"], &[]).await;
    for command in ["tenant         ", "token          ", "system-domain  "] {
        assert!(
            help.success().lines().any(|line| line.starts_with(&format!("  {command}"))),
            "{}",
            help.stdout
        );
    }
    for command in ["tenant", "token", "system-domain"] {
        let help = CommandOutput::run(&[command, "--help"], &[]).await;
        for line in help.success().lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}
