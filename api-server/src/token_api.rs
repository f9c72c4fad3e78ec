//! `/v1`: the token API. Inboxes are addressed by e-mail address; nothing is created first.

mod config;
mod domain;
mod email;
mod inbox;
mod owned;
mod sse;
pub(crate) mod summary;
mod token;
mod wait;

use serde_json::json;

use crate::error::code;
use crate::long_poll;
use crate::message_view::Email;
use crate::openapi::{Credential, Operation, Routes, attachment_index, email_id};

/// The routes of `/v1`.
pub(crate) fn routes() -> Routes {
    use Credential::{Live, None};
    let of_email = |id, summary| {
        Operation::new(id, Live, summary).parameter(email_id()).fails(&[
            code::INVALID_REQUEST,
            code::NOT_FOUND,
            code::EMAIL_EXPIRED,
        ])
    };
    let of_inbox = |id, summary| {
        let address = json!({"name": "address", "in": "path", "required": true, "description": "The exact address.",
                             "schema": {"type": "string", "pattern": "^.+@.+$"}});
        Operation::new(id, Live, summary).parameter(address).fails(&[code::INVALID_REQUEST, code::NOT_FOUND])
    };
    Routes::new()
        .merge(domain::routes())
        .merge(sse::routes())
        .merge(token::routes())
        .get(
            "/v1/config",
            Operation::new("getConfig", None, "Show what a client needs to know before it has a token")
                .json::<config::ServerConfig>(200, "The public configuration; may be kept for 60 s."),
            config::get_config,
        )
        .get(
            "/v1/inbox/{address}",
            long_poll::described(of_inbox("waitOnInbox", "Wait for mail to an address"))
                .json::<wait::NewEmails>(200, "There is mail, newest first.")
                .fails(&[code::ADDR_BUSY]),
            inbox::wait_on_inbox,
        )
        .get(
            "/v1/me",
            long_poll::described(Operation::new(
                "waitOnOwned",
                Live,
                "Wait for mail to everything the tenant owns",
            ))
            .description("The tenant's mailboxes, and every address under its verified custom domains.")
            .json::<wait::NewEmails>(200, "There is mail, newest first."),
            owned::wait_on_owned,
        )
        .get(
            "/v1/domain/{domain}",
            long_poll::described(Operation::new(
                "waitOnDomain",
                Live,
                "Wait for mail to every address under a domain",
            ))
            .parameter(json!({"name": "domain", "in": "path", "required": true,
                                  "description": "A verified custom domain of the tenant.",
                                  "schema": {"type": "string", "minLength": 1}}))
            .json::<wait::NewEmails>(200, "There is mail, newest first.")
            .fails(&[code::NOT_FOUND]),
            owned::wait_on_domain,
        )
        .delete(
            "/v1/inbox/{address}",
            of_inbox("clearInbox", "Delete every message of an address").empty(204, "It is empty."),
            inbox::clear_inbox,
        )
        .get(
            "/v1/email/{id}",
            of_email("getEmail", "Show a message").json::<Email<'_>>(200, "The whole message."),
            email::get_email,
        )
        .delete(
            "/v1/email/{id}",
            of_email("deleteEmail", "Delete a message").empty(204, "It is gone."),
            email::delete_email,
        )
        .get(
            "/v1/email/{id}/raw",
            of_email("getRawEmail", "Download a message as it was received").binary(
                200,
                "message/rfc822",
                "The original, with trace fields.",
            ),
            email::get_raw,
        )
        .get(
            "/v1/email/{id}/attachments/{index}",
            of_email("getEmailAttachment", "Download an attachment").parameter(attachment_index()).binary(
                200,
                "*/*",
                "The attachment, decoded.",
            ),
            email::get_attachment,
        )
}
