//! Routes with their operations.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{delete, get, post, put};

use super::operation::Operation;
use crate::state::AppState;

/// A router and the document's operations, one by one the same.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<AppState>,
    operations: Vec<(&'static str, &'static str, Operation)>,
}

macro_rules! method {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        pub(crate) fn $name<H, T>(mut self, path: &'static str, operation: Operation, handler: H) -> Self
        where
            H: Handler<T, AppState>,
            T: 'static,
        {
            self.router = self.router.route(path, $name(handler));
            self.operations.push((stringify!($name), path, operation));
            self
        }
    };
}

impl Routes {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    method!(get, "Adds a `GET` route.");
    method!(post, "Adds a `POST` route.");
    method!(put, "Adds a `PUT` route.");
    method!(delete, "Adds a `DELETE` route.");

    /// These and the others.
    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.router = self.router.merge(others.router);
        self.operations.extend(others.operations);
        self
    }

    /// Method in lower case, path and operation of each route, in the order they were added.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&'static str, &'static str, &Operation)> {
        self.operations.iter().map(|(method, path, operation)| (*method, *path, operation))
    }

    /// What answers them.
    pub(crate) fn into_router(self) -> Router<AppState> {
        self.router
    }
}
