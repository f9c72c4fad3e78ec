//! Operations, and the routes that they are declared with: parameters and body, answers, and every code that an
//! operation can fail with.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{delete, get, post, put};
use serde_json::{Value, json};
use tempmail_model::limits::{OWNED_PAGE_SIZE, PAGE_SIZE, PAGES_MAX};
use utoipa::{PartialSchema, ToSchema};

use crate::http::error::code::{self, Code};

/// The credential that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// Nothing.
    None,
    /// A mailbox JWT.
    Mailbox,
    /// A Pro token, or nothing.
    MaybePro,
    /// A Pro token or a Pro session.
    Pro,
    /// A live token.
    Live,
    /// A live token, which may be in the query: EventSource can't set headers.
    LiveInQuery,
}

impl Credential {
    /// The codes for a missing or wrong credential.
    fn errors(self) -> &'static [Code] {
        match self {
            Self::None => &[],
            Self::Mailbox => &[code::AUTHENTICATION_REQUIRED, code::INVALID_TOKEN, code::ACCOUNT_DISABLED],
            Self::MaybePro => &[code::INVALID_TOKEN, code::ACCOUNT_DISABLED, code::SESSION_EXPIRED],
            Self::Pro => &[
                code::AUTHENTICATION_REQUIRED,
                code::INVALID_TOKEN,
                code::ACCOUNT_DISABLED,
                code::SESSION_EXPIRED,
            ],
            // To a minted token, what is not about its address does not exist.
            Self::Live | Self::LiveInQuery => &[
                code::AUTHENTICATION_REQUIRED,
                code::INVALID_TOKEN,
                code::ACCOUNT_DISABLED,
                code::SESSION_EXPIRED,
                code::NOT_FOUND,
            ],
        }
    }
}

/// An answer that is not an error.
#[derive(Debug)]
pub(super) struct Success {
    pub(super) status: u16,
    pub(super) description: &'static str,
    /// Media type and schema.
    pub(super) content: Option<(&'static str, Value)>,
    /// Name and description.
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

/// Declares an operation.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) credential: Credential,
    pub(super) parameters: Vec<Value>,
    pub(super) body: Option<Value>,
    pub(super) successes: Vec<Success>,
    pub(super) errors: Vec<Code>,
    /// Whether the answer is always the same, so that nothing can fail.
    pub(super) constant: bool,
    /// The schemas of the answers, by name.
    pub(super) schemas: Vec<(String, Value)>,
}

impl Operation {
    /// An operation with this unique id that requires `credential`.
    pub(crate) fn new(id: &'static str, credential: Credential, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            description: "",
            credential,
            parameters: Vec::new(),
            body: None,
            successes: Vec::new(),
            errors: credential.errors().to_vec(),
            constant: false,
            schemas: Vec::new(),
        }
    }

    /// Adds to the summary.
    pub(crate) fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Declares that the answer is always the same.
    pub(crate) fn constant(self) -> Self {
        Self { constant: true, ..self }
    }

    /// A parameter; a malformed one is 400.
    pub(crate) fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// `page` of a list of messages.
    pub(crate) fn page(self) -> Self {
        self.page_of(PAGE_SIZE)
    }

    /// `page` of a list of what a tenant has.
    pub(crate) fn page_of_owned(self) -> Self {
        self.page_of(OWNED_PAGE_SIZE)
    }

    fn page_of(self, size: i64) -> Self {
        let about =
            format!("Page of {size}, from 1 to {PAGES_MAX}; a page with fewer than {size} is the last one.");
        let schema = json!({"type": "integer", "minimum": 1, "maximum": PAGES_MAX, "default": 1});
        self.parameter(query("page", &about, schema)).fails(&[code::INVALID_REQUEST])
    }

    /// `before` of a list of messages.
    pub(crate) fn before(self) -> Self {
        let about = "Id of a message: those before it are listed, such as those after the last page.";
        let before = query("before", about, json!({"type": "string", "format": "uuid"}));
        self.parameter(before).fails(&[code::INVALID_REQUEST, code::NOT_FOUND, code::EMAIL_EXPIRED])
    }

    /// A JSON body of this schema.
    pub(crate) fn body(mut self, schema: Value) -> Self {
        self.body = Some(schema);
        self.fails(&[code::INVALID_REQUEST, code::REQUEST_TIMEOUT])
    }

    /// A success with a JSON body.
    pub(crate) fn json<T: ToSchema>(mut self, status: u16, description: &'static str) -> Self {
        let schema = json!({"$ref": format!("#/components/schemas/{}", T::name())});
        self.add_schemas::<T>();
        self.success(status, description, Some(("application/json", schema)))
    }

    /// Adds the schema of a type that the description mentions.
    pub(crate) fn about<T: ToSchema>(mut self) -> Self {
        self.add_schemas::<T>();
        self
    }

    /// A success with a JSON body of this schema.
    pub(crate) fn json_of(self, status: u16, description: &'static str, schema: Value) -> Self {
        self.success(status, description, Some(("application/json", schema)))
    }

    /// A success with other content.
    pub(crate) fn binary(self, status: u16, media_type: &'static str, description: &'static str) -> Self {
        self.success(status, description, Some((media_type, json!({}))))
    }

    /// A success without a body.
    pub(crate) fn empty(self, status: u16, description: &'static str) -> Self {
        self.success(status, description, None)
    }

    /// A header field that is always in the last declared success.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        if let Some(success) = self.successes.last_mut() {
            success.headers.push((name, description));
        }
        self
    }

    /// Codes that the operation can fail with, besides those of its credential, body and surface.
    pub(crate) fn fails(mut self, codes: &[Code]) -> Self {
        for code in codes {
            if !self.errors.contains(code) {
                self.errors.push(*code);
            }
        }
        self
    }

    fn add_schemas<T: ToSchema>(&mut self) {
        let mut schemas = vec![(T::name().into_owned(), <T as PartialSchema>::schema())];
        T::schemas(&mut schemas);
        self.schemas.extend(schemas.into_iter().map(|(name, schema)| {
            (name, serde_json::to_value(schema).expect("a schema can be written as JSON"))
        }));
    }

    fn success(
        mut self,
        status: u16,
        description: &'static str,
        content: Option<(&'static str, Value)>,
    ) -> Self {
        self.successes.push(Success { status, description, content, headers: Vec::new() });
        self
    }
}

/// A path parameter that is an id.
pub(crate) fn path_id(description: &str) -> Value {
    json!({"name": "id", "in": "path", "required": true, "description": description,
           "schema": {"type": "string", "format": "uuid"}})
}

/// The path parameter `id` of a message.
pub(crate) fn email_id() -> Value {
    path_id("Id of the message.")
}

/// The path parameter `index` of an attachment.
pub(crate) fn attachment_index() -> Value {
    json!({"name": "index", "in": "path", "required": true, "description": "Index in the list of attachments, from 0.",
           "schema": {"type": "integer", "minimum": 0}})
}

/// An optional query parameter.
pub(crate) fn query(name: &str, description: &str, schema: Value) -> Value {
    let mut parameter = json!({"name": name, "in": "query", "required": false, "description": description});
    parameter["schema"] = schema;
    parameter
}

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
