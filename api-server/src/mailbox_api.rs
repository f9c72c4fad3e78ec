//! `/api`: mailboxes and their messages, for whoever has the address and password.

mod account;
mod domain;
mod message;
mod sign_in;

use crate::error::code;
use crate::message_view::{FullMessage, MessageList};
use crate::openapi::{Credential, Operation, Routes, attachment_index, email_id};

/// The routes of `/api`.
pub(crate) fn routes() -> Routes {
    use Credential::{Mailbox, MaybePro, None};
    let of_message = |id, summary| {
        Operation::new(id, Mailbox, summary).parameter(email_id()).fails(&[
            code::INVALID_REQUEST,
            code::NOT_FOUND,
            code::EMAIL_EXPIRED,
        ])
    };
    Routes::new()
        .get(
            "/api/domains",
            Operation::new("listSystemDomains", None, "List the system domains")
                .json::<domain::SystemDomains>(200, "The domains, in their order; may be kept for 60 s."),
            domain::list_domains,
        )
        .post(
            "/api/accounts",
            Operation::new("createAccount", MaybePro, "Create a mailbox")
                .description("Free on a system domain; with a Pro token the tenant's, on its verified custom domains too.")
                .body(account::new_account_schema())
                .json::<account::SignedIn>(201, "The mailbox, and a JWT for it.")
                .fails(&[
                    code::INVALID_ADDRESS,
                    code::PASSWORD_TOO_SHORT,
                    code::PASSWORD_TOO_LONG,
                    code::ACCOUNT_LIMIT_REACHED,
                    code::ADDRESS_TAKEN,
                ]),
            account::create_account,
        )
        .post(
            "/api/token",
            Operation::new("signIn", None, "Sign in to a mailbox")
                .body(account::credentials_schema())
                .json::<account::SignedIn>(200, "A new JWT, for 7 days.")
                .fails(&[code::INVALID_CREDENTIALS, code::ACCOUNT_DISABLED]),
            sign_in::create_token,
        )
        .get(
            "/api/me",
            Operation::new("getAccount", Mailbox, "Show the mailbox")
                .json::<account::Account>(200, "The mailbox."),
            account::get_account,
        )
        .delete(
            "/api/me",
            Operation::new("deleteAccount", Mailbox, "Delete the mailbox with its mail")
                .empty(204, "It is gone.")
                .fails(&[code::MANAGED_BY_KUBERNETES]),
            account::delete_account,
        )
        .get(
            "/api/messages",
            Operation::new("listMessages", Mailbox, "List the mailbox's messages")
                .page()
                .json::<MessageList>(200, "A page, newest first."),
            message::list_messages,
        )
        .get(
            "/api/messages/{id}",
            of_message("getMessage", "Show a message").json::<FullMessage<'_>>(200, "The whole message."),
            message::get_message,
        )
        .delete(
            "/api/messages/{id}",
            of_message("deleteMessage", "Delete a message").empty(204, "It is gone."),
            message::delete_message,
        )
        .put(
            "/api/messages/{id}/read",
            of_message("markMessageRead", "Mark a message as read").empty(204, "It is marked."),
            message::mark_read,
        )
        .get(
            "/api/messages/{id}/raw",
            of_message("getRawMessage", "Download a message as it was received")
                .binary(200, "message/rfc822", "The original, with trace fields."),
            message::get_raw,
        )
        .get(
            "/api/messages/{id}/attachments/{index}",
            of_message("getMessageAttachment", "Download an attachment")
                .parameter(attachment_index())
                .binary(200, "*/*", "The attachment, decoded."),
            message::get_attachment,
        )
}
