//! Waiting for objects.

use std::time::Instant;

use serde_json::Value;

use super::objects::Objects;
use super::status::condition;
use crate::wait::{DEADLINE, eventually, next_probe};

impl Objects {
    /// Waits until `is_reached` is true of an object, and returns the object.
    ///
    /// # Panics
    /// It never is, or there is no such object.
    pub async fn wait_until(&self, object: &str, what: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let shown = self.get(object).await;
            if is_reached(&shown) {
                return shown;
            }
            assert!(started.elapsed() < DEADLINE, "{object} never has {what}: {shown:#}");
            next_probe(started).await;
        }
    }

    /// Waits until a condition of an object is `True` (`Ready`) or has another status (`Ready=False`), of
    /// its newest spec; returns the object.
    ///
    /// # Panics
    /// It never is.
    pub async fn wait_for_condition(&self, object: &str, wanted: &str) -> Value {
        let (kind, status) = wanted.split_once('=').unwrap_or((wanted, "True"));
        self.wait_until(object, wanted, |shown| {
            let observed = shown["status"]["observedGeneration"].as_i64();
            // An object that was never reconciled observes none, as `kubectl wait` has it.
            let is_current = observed.is_none() || observed == shown["metadata"]["generation"].as_i64();
            is_current && condition(shown, kind).is_some_and(|condition| condition["status"] == status)
        })
        .await
    }

    /// Waits until a condition of an object has this reason, and returns the object.
    ///
    /// # Panics
    /// It never has.
    pub async fn wait_for_reason(&self, object: &str, kind: &str, reason: &str) -> Value {
        let what = format!("{reason} of {kind}");
        let has_reason = |shown: &Value| condition(shown, kind).is_some_and(|one| one["reason"] == reason);
        self.wait_until(object, &what, has_reason).await
    }

    /// Waits until a field of an object's status has this value, and returns the object.
    ///
    /// # Panics
    /// It never has.
    pub async fn wait_for_status(&self, object: &str, field: &str, value: impl Into<Value>) -> Value {
        let value = value.into();
        let what = format!("{value} in status.{field}");
        self.wait_until(object, &what, |shown| shown["status"][field] == value).await
    }

    /// Waits until the operator has reconciled the newest spec of an object, and returns the object.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_until_observed(&self, object: &str) -> Value {
        self.wait_until(object, "its newest generation in status.observedGeneration", |shown| {
            shown["status"]["observedGeneration"] == shown["metadata"]["generation"]
        })
        .await
    }

    /// Waits until there is such an object, and returns it.
    ///
    /// # Panics
    /// There never is.
    pub async fn wait_until_created(&self, object: &str) -> Value {
        eventually(&format!("{object} is created"), || self.get_opt(object)).await
    }

    /// Waits for an event with this reason: events are written after the status that they are about.
    ///
    /// # Panics
    /// There never is.
    pub async fn wait_for_event(&self, reason: &str) {
        eventually(&format!("an event {reason}"), || async {
            self.list("event").await.iter().any(|event| event["reason"] == reason).then_some(())
        })
        .await;
    }

    /// Waits for an event with this reason about an object (`tenant/acme`), and returns its text.
    ///
    /// # Panics
    /// There never is.
    pub async fn wait_for_event_about(&self, object: &str, reason: &str) -> String {
        let uid = self.get(object).await["metadata"]["uid"].clone();
        eventually(&format!("an event {reason} about {object}"), || async {
            let events = self.list_events_of(object).await;
            let found =
                events.iter().find(|event| event["reason"] == reason && event["regarding"]["uid"] == uid)?;
            found["note"].as_str().map(str::to_owned)
        })
        .await
    }

    /// Waits until an object is gone; another one of its name may be there.
    ///
    /// # Panics
    /// It stays.
    pub async fn wait_until_deleted(&self, object: &str) {
        if let Some(first) = self.get_opt(object).await {
            self.wait_until_gone(object, &first["metadata"]["uid"]).await;
        }
    }

    /// Waits until the object of this uid is gone.
    pub(super) async fn wait_until_gone(&self, object: &str, uid: &Value) {
        let started = Instant::now();
        while let Some(shown) = self.get_opt(object).await {
            if shown["metadata"]["uid"] != *uid {
                return;
            }
            assert!(started.elapsed() < DEADLINE, "{object} is never gone: {shown:#}");
            next_probe(started).await;
        }
    }
}
