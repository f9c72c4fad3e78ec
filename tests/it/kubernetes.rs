//! What tempmail promises to those who declare it in Kubernetes, on a real API server.

mod api_token;
mod at_once;
mod bad_input;
mod charts;
mod custom_domain;
mod deadline;
mod documentation;
mod fencing;
mod gitops;
mod harness;
mod killed;
mod mailbox;
mod orphan;
mod outage;
mod platform_keys;
mod quickstart;
mod roles;
mod rules;
mod secret;
mod steady;
mod system_domain;
mod tenancy;
mod tenant;
mod webhook;
