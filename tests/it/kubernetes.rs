//! The operator, its kinds, charts and documentation, on a real API server.

mod api_server_faults;
mod api_token;
mod charts;
mod crash;
mod custom_domain;
mod documentation;
mod gitops;
mod harness;
mod idle;
mod invalid_spec;
mod leadership;
mod mailbox;
mod many_objects;
mod missing_object;
mod pause;
mod platform_keys;
mod postgres_outage;
mod quickstart;
mod roles;
mod secret;
mod system_domain;
mod tenancy;
mod tenant;
mod validation;
mod verification_deadline;
mod webhook;
