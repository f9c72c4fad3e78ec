//! `/v1/tokens`.

use crate::openapi::Routes;

/// Its routes.
pub(super) fn routes() -> Routes {
    Routes::new()
}
