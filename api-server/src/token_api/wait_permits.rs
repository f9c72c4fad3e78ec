//! What bounds the waits that are open at once: one of a token, and ten of a tenant on an address.

use tempmail_bus::{Permit, PermitKey};
use tempmail_model::limits::{LONG_POLLS_PER_ADDRESS, LONG_POLLS_PER_TOKEN};

use crate::auth::LiveCaller;
use crate::http::error::ApiError;
use crate::realtime::subscription::Scope;
use crate::state::AppState;

/// The permits of a wait.
pub(super) struct WaitPermits {
    token: Permit,
    address: Option<Permit>,
}

impl WaitPermits {
    /// Acquires the token's permit, and for an address the tenant's.
    ///
    /// # Errors
    /// [`ApiError::TokenBusy`], [`ApiError::AddrBusy`].
    pub(super) async fn acquire(
        state: &AppState,
        caller: LiveCaller,
        scope: &Scope,
    ) -> Result<Self, ApiError> {
        let key = PermitKey::TokenWaits(caller.token);
        let token = state.bus.acquire(key, LONG_POLLS_PER_TOKEN).await.ok_or(ApiError::TokenBusy)?;
        let mut address = None;
        if let Scope::Address(of) = scope {
            let key = PermitKey::AddressWaits { tenant: caller.tenant, address: of.inbox_key() };
            address = state.bus.acquire(key, LONG_POLLS_PER_ADDRESS).await;
            if address.is_none() {
                token.release().await;
                return Err(ApiError::AddrBusy);
            }
        }
        Ok(Self { token, address })
    }

    /// Returns when they are free for the client's next request.
    pub(super) async fn release(self) {
        if let Some(address) = self.address {
            address.release().await;
        }
        self.token.release().await;
    }
}
