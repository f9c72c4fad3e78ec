//! Settings of former versions. What still sets one is no error for a version: the setting is ignored, with one warning when
//! a process starts.

use serde_json::Value;

use super::setting::pointer;

/// A setting that was removed, or a group of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedSetting {
    /// Its name, with dots between groups.
    pub(super) path: &'static str,
    /// Why it is not there any more: a sentence for who still sets it.
    reason: &'static str,
}

/// All that are ignored. An entry goes with the version after the one that removed the setting.
const REMOVED: &[RemovedSetting] = &[
    removed(
        "compat.mailtm",
        "the drop-in surface for clients of mail.tm was removed, and tokens for it work nowhere",
    ),
    removed(
        "operator.secret_checks_per_second",
        "`operator.secret_check_seconds` says how often each Secret is looked at",
    ),
    removed("admin.connections", "it is always 64"),
    removed("admin.request_seconds", "it is always 10 s"),
    removed("dns.interval_seconds", "it is always 5 minutes"),
    removed("dns.pending_hours", "it is always 72 hours"),
    removed("http.body_seconds", "it is always 30 s"),
    removed("http.header_seconds", "it is always 10 s"),
    removed("http.min_drain_rate", "it is always 4,096 bytes a second"),
    removed("http.unauthenticated_sockets_per_client", "it is always 20"),
    removed("limits.minted_per_second", "it is always 100"),
    removed("limits.password_max", "it is always 128 characters"),
    removed("limits.password_resets_per_minute", "it is always 20"),
    removed("limits.refused_per_minute", "it is always 300"),
    removed("limits.sign_in_failures_per_client", "it is always 100"),
    removed("limits.sign_in_failures_per_minute", "it is always 20"),
    removed("operator.lease_seconds", "it is always 15 s"),
    removed("smtp.command_seconds", "it is always 60 s"),
    removed("smtp.data_seconds", "it is always 3 minutes"),
    removed("smtp.idle_seconds", "it is always 5 s"),
    removed("smtp.max_errors", "it is always 20"),
    removed("smtp.max_header_bytes", "it is always 256 KiB"),
    removed("smtp.max_header_fields", "it is always 1,000"),
    removed("smtp.min_data_rate", "it is always 1,024 bytes a second"),
    removed("smtp.session_seconds", "it is always an hour"),
    removed("smtp.transaction_seconds", "it is always 30 minutes"),
    removed("smtp.tenant_bytes_per_hour", "storage bounds what a tenant receives"),
    removed("smtp.tenant_bytes_per_hour_per_peer", "storage bounds what a tenant receives"),
    removed("smtp.address_bytes_per_hour", "storage bounds what a tenant receives"),
    removed("smtp.address_bytes_per_hour_per_peer", "storage bounds what a tenant receives"),
];

const fn removed(path: &'static str, reason: &'static str) -> RemovedSetting {
    RemovedSetting { path, reason }
}

impl RemovedSetting {
    /// The removed setting that `path` names, or the group that it was in.
    pub(super) fn find(path: &str) -> Option<Self> {
        let names = |removed: &&Self| {
            path.strip_prefix(removed.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        REMOVED.iter().find(names).copied()
    }

    /// Logs that it is ignored.
    pub(crate) fn warn(self) {
        tracing::warn!("`{}` is ignored, so remove it from the configuration: {}", self.path, self.reason);
    }
}

/// Takes removed settings out of a file of settings.
pub(super) fn take_from(file: &mut Value) -> Vec<RemovedSetting> {
    let is_set = |removed: &&RemovedSetting| {
        let (group, name) = removed.path.rsplit_once('.').unwrap_or(("", removed.path));
        let group = file.pointer_mut(&pointer(group)).and_then(Value::as_object_mut);
        group.is_some_and(|group| group.remove(name).is_some())
    };
    REMOVED.iter().filter(is_set).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::setting::settings;
    use super::*;

    #[test]
    fn no_setting_is_both_there_and_removed() {
        for setting in settings() {
            assert_eq!(RemovedSetting::find(setting.path), None, "{}", setting.path);
        }
        assert!(RemovedSetting::find("compat.mailtm").is_some());
        assert!(RemovedSetting::find("compat.mailtmx").is_none());
    }
}
