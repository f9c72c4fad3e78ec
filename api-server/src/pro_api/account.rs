//! `/pro/api/accounts`.

use crate::openapi::Routes;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new()
}
