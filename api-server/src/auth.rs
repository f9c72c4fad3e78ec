//! Authentication: one extractor per credential, each of which yields a typed caller.
//!
//! | extractor | credential | where |
//! |---|---|---|
//! | [`MailboxCaller`] | mailbox JWT, `Authorization: Bearer` | `/api` |
//! | [`ProToken`] | `tm_pro_…`, `Authorization: Bearer` | `POST /api/accounts` |
//! | [`ProCaller`] | `tm_pro_…` or a Pro session, `Authorization: Bearer`, or a session in a cookie | `/pro/api` |
//! | [`LiveCaller`] | `tm_live_…`, `x-api-token`; not a minted one | `/v1` |
//! | [`MailCaller`] | `tm_live_…`, `x-api-token`; minted, for one address | mail on `/v1` |
//! | [`StreamCaller`] | `tm_live_…`, `x-api-token` or `token` in the query | `/v1/sse` |
//! | [`DropInCaller`] | `tm_live_…` for a drop-in surface; Basic, Bearer or `x-api-token` | that surface |
//!
//! Every request reads the store once, so that a revoked right is refused at once.

mod authenticator;
mod bearer;
mod browser_session;
mod caller;
mod drop_in_caller;
mod jwt;
mod live_caller;
mod password;
mod subscriber_credential;

pub(crate) use authenticator::Authenticator;
pub use browser_session::SignInLink;
pub(crate) use browser_session::{SessionCookie, UnusedSignInLink};
pub(crate) use caller::{MailboxCaller, ProCaller, ProToken, TenantCaller};
pub(crate) use drop_in_caller::DropInCaller;
pub(crate) use jwt::VerifiedMailboxToken;
pub(crate) use live_caller::{LiveCaller, MailCaller, McpCaller, StreamCaller};
pub(crate) use password::Passwords;
pub(crate) use subscriber_credential::SubscriberCredential;
