//! API v1 of Mailpit.

mod message;
mod messages;
mod search;
mod view;

use tempmail_model::surface::DropInSurface;

use super::Surface;

async fn mailpit() -> Surface {
    Surface::start(DropInSurface::Mailpit).await
}

/// The id of the newest message.
async fn newest(mailpit: &Surface) -> String {
    let list = mailpit.get("/api/v1/messages?limit=1").await.expect(200);
    list["messages"][0]["ID"].as_str().unwrap().to_owned()
}
