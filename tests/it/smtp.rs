//! Inbound SMTP.

mod commands;
mod data;
mod limits;
mod many_clients;
mod peer_limits;
mod postgres_outage;
mod proxy_protocol;
mod quota;
mod recipients;
mod sessions;
mod starttls;

use tempmail_runtime::config::Config;
use tempmail_tests::{App, Reply, SmtpClient, smtp};

/// Tempmail with clients at several addresses: they connect through the PROXY protocol, as if a load balancer were
/// before them.
pub async fn app_with_peers(change: impl FnOnce(&mut Config)) -> App {
    App::builder()
        .config(|config| {
            config.smtp.proxy_networks =
                ["127.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap()).into();
            change(config);
        })
        .start()
        .await
}

/// A session of the client at this address.
pub async fn session(app: &App, address: &str) -> SmtpClient {
    SmtpClient::connect_with_ehlo_from(app.smtp(), address).await
}

/// Sends a small mail from this address; returns the first negative reply, or the reply to the end of data.
pub async fn send_from(app: &App, address: &str, recipient: &str) -> Reply {
    let message = smtp::message("a@client.example", "sent", "");
    session(app, address).await.transact("a@client.example", &[recipient], &message).await
}
