//! The backup of `tempmail up` as docs/operations.md has it: stop, copy the directory, start.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::http::{self, Request};
use tempmail_tests::{send_mail, smtp};

const ADDRESS: &str = "kept@inbox.localhost";

/// The commands of the document, with its example paths replaced.
fn documented_copy(from: &Path, to: &Path) -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let text = std::fs::read_to_string(document).unwrap();
    let (_, section) = text.split_once("### Of `tempmail up`").expect("the document has the section");
    let (_, block) = section.split_once("```sh\n").expect("the section has commands");
    let (block, _) = block.split_once("```").unwrap();
    let commands = block.replace("/srv/tempmail", from.to_str().unwrap());
    let commands = commands.replace("/backup/tempmail", to.to_str().unwrap());
    assert!(commands.contains(to.to_str().unwrap()) && commands.contains(from.to_str().unwrap()));
    commands
}

async fn send(installation: &UpInstallation, subject: &str) {
    let message = smtp::message("a@client.example", subject, "");
    assert_eq!(send_mail(installation.smtp, "a@client.example", ADDRESS, &message).await.code, 250);
}

async fn subjects(installation: &UpInstallation, token: &str) -> Vec<String> {
    let url = format!("http://{}/v1/inbox/{ADDRESS}", installation.http);
    let request = Request::new(&http::client(), reqwest::Method::GET, &url).live(token);
    let body = request.send().await.expect(200);
    let emails = body["emails"].as_array().unwrap().iter();
    emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_from_a_copy_of_the_directory_of_a_stopped_up() {
    let (original, restored) = (UpInstallation::new(), UpInstallation::new());
    let mut server = original.up(&[]);
    let credentials = original.credentials();
    let token = credentials["live_token"].as_str().unwrap();
    send(&original, "before the backup").await;
    server.signal(Signal::SIGTERM);
    assert!(server.wait().success(), "{}", server.output());

    let copy = documented_copy(&original.data_dir(), &restored.data_dir());
    assert!(Command::new("sh").args(["-ec", &copy]).status().unwrap().success(), "{copy}");
    let _original = original.up(&[]);
    send(&original, "after the backup").await;

    let _restored = restored.up(&[]);
    assert_eq!(restored.credentials()["live_token"], token);
    assert_eq!(subjects(&restored, token).await, ["before the backup"]);
    send(&restored, "after the restore").await;
    assert_eq!(subjects(&restored, token).await, ["after the restore", "before the backup"]);
    assert_eq!(subjects(&original, token).await, ["after the backup", "before the backup"]);
}
