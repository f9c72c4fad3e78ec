//! Routes with their operations.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{delete, get, post, put};

use super::operation::Operation;

/// A router over the state `S`, and the operation of each of its routes.
pub(crate) struct Routes<S> {
    router: Router<S>,
    operations: Vec<(&'static str, &'static str, Operation)>,
}

macro_rules! method {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        pub(crate) fn $name<H, T>(mut self, path: &'static str, operation: Operation, handler: H) -> Self
        where
            H: Handler<T, S>,
            T: 'static,
        {
            self.router = self.router.route(path, $name(handler));
            self.operations.push((stringify!($name), path, operation));
            self
        }
    };
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes.
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), operations: Vec::new() }
    }

    method!(get, "Adds a `GET` route.");
    method!(post, "Adds a `POST` route.");
    method!(put, "Adds a `PUT` route.");
    method!(delete, "Adds a `DELETE` route.");

    /// Adds the routes of `others`.
    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.router = self.router.merge(others.router);
        self.operations.extend(others.operations);
        self
    }

    /// Method in lower case, path and operation of each route, in the order they were added.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&'static str, &'static str, &Operation)> {
        self.operations.iter().map(|(method, path, operation)| (*method, *path, operation))
    }

    /// The router of these routes.
    pub(crate) fn into_router(self) -> Router<S> {
        self.router
    }
}
