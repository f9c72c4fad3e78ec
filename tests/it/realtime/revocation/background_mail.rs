//! Mail that keeps arriving while a test does something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempmail_tests::Fleet;
use tempmail_tests::smtp::{message, send_mail};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Time between two mails of a sender.
const INTERVAL: Duration = Duration::from_millis(10);

/// One sender at each of two ingest processes.
pub struct BackgroundMail {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl BackgroundMail {
    /// Starts to send to these addresses in turn, whether the mail is accepted or not.
    pub fn start(fleet: &Fleet, addresses: &[&str]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let addresses: Vec<String> = addresses.iter().map(|it| (*it).to_owned()).collect();
        let senders = [0, 1].map(|index| {
            let (server, stop, addresses) = (fleet.smtp(index), Arc::clone(&stop), addresses.clone());
            tokio::spawn(async move {
                for (number, address) in addresses.iter().cycle().enumerate() {
                    if stop.load(Ordering::Acquire) {
                        return;
                    }
                    let mail = message("Ada <ada@client.example>", &format!("{index}.{number}"), "");
                    send_mail(server, "ada@client.example", address, &mail).await;
                    sleep(INTERVAL).await;
                }
            })
        });
        Self { stop, senders: senders.into() }
    }

    /// Stops once the mails in flight are answered.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::Release);
        for sender in self.senders {
            sender.await.unwrap();
        }
    }
}
