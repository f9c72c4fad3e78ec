//! What each metric is: the `# HELP` lines of `/metrics`. `docs/operations.md` explains the labels.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Names of the counters, and what they count.
pub const COUNTERS: &[(&str, &str)] = &[
    ("tempmail_admin_connections_ended_total", "Connections to the admin port that were ended or refused."),
    ("tempmail_arrivals_repaired_total", "Messages that were found by polling, because their hint was lost."),
    ("tempmail_bus_connections_total", "Times that this process connected to Redis."),
    ("tempmail_bus_dropped_arrivals_total", "Arrivals that were not published to the other processes."),
    ("tempmail_bus_invalid_messages_total", "Messages of the bus that this version does not understand."),
    ("tempmail_dns_checks_total", "Checks of custom domains, by the findings about the TXT and MX records."),
    ("tempmail_domain_checks_total", "Checks of custom domains, by their effect on the domain."),
    ("tempmail_domain_failed_passes_total", "Passes over custom domains that failed."),
    ("tempmail_http_connections_ended_total", "HTTP connections that the server ended, by reason."),
    ("tempmail_http_refused_total", "HTTP requests that were answered with an error, by code and reason."),
    ("tempmail_http_requests_total", "HTTP requests by method, route and status."),
    ("tempmail_messages_purged_total", "Messages that were deleted in batches."),
    ("tempmail_operator_password_hashes_total", "Password hashes of Mailboxes, some 50 ms of CPU time each."),
    ("tempmail_operator_reconcile_errors_total", "Failed reconciliations, by kind and reason."),
    ("tempmail_operator_reconciles_total", "Reconciliations, by kind and result."),
    ("tempmail_operator_secret_checks_total", "Checks of Secrets for a loss or a change, by result."),
    ("tempmail_operator_status_patches_total", "Status updates that were written, or skipped as up to date."),
    ("tempmail_password_hashes_total", "Passwords that were hashed, or compared with a hash."),
    (
        "tempmail_postgres_failures_total",
        "Statements that Postgres did not get or did not answer, by reason.",
    ),
    ("tempmail_smtp_bytes_total", "Bytes of stored mail."),
    ("tempmail_smtp_connections_total", "SMTP connections, accepted and rejected."),
    ("tempmail_smtp_limited_total", "SMTP replies that are due to a limit."),
    ("tempmail_smtp_mails_total", "Mails by the code of the reply to their data."),
    ("tempmail_smtp_proxy_headers_refused_total", "Connections of load balancers without a PROXY header."),
    ("tempmail_smtp_recipients_rejected_total", "Rejected recipients, by code and reason."),
    ("tempmail_smtp_rejections_delayed_total", "Replies about unknown recipients that were delayed."),
    ("tempmail_smtp_tls_failures_total", "Failed TLS handshakes of SMTP clients."),
    ("tempmail_smtp_tls_renewals_failed_total", "Renewed certificates that could not be used."),
    ("tempmail_spans_total", "Spans of traces that were sent, failed or dropped."),
    ("tempmail_stream_generations_total", "Generations of the stream that began, as after a restore."),
    ("tempmail_webhook_attempts_postponed_total", "Webhook attempts postponed because no file was free."),
    ("tempmail_webhook_attempts_total", "Webhook attempts by result."),
    (
        "tempmail_webhook_events_given_up_total",
        "Events of webhooks that were given up after their tenth attempt failed.",
    ),
    ("tempmail_webhook_lanes_given_up_total", "Webhooks whose lease was not renewed in time."),
    ("tempmail_webhooks_disabled_total", "Webhooks that were disabled after ten failures in a row."),
    ("tempmail_websockets_ended_total", "WebSockets that ended, by reason."),
    ("tempmail_worker_failed_passes_total", "Failed runs of the jobs of the worker."),
    ("rest_client_requests_total", "Requests to the API server of Kubernetes, by method and status code."),
    ("workqueue_adds_total", "Objects that were added to the work queue of a kind."),
    ("workqueue_retries_total", "Reconciliations that are retried after an error."),
];

/// Names of the gauges, and what they measure.
pub const GAUGES: &[(&str, &str)] = &[
    ("tempmail_answer_memory_bytes", "Memory of answers that are rendered or wait to be read."),
    ("tempmail_audit_oldest_unlogged_seconds", "Age of the oldest audit entry that is not in the log."),
    ("tempmail_bus_degraded", "1 while Redis is disconnected, else 0."),
    ("tempmail_domains_due", "Custom domains that were due at the start of the last pass."),
    ("tempmail_domains_pending", "Custom domains that are not verified yet."),
    ("tempmail_ingest_oldest_unanswered_seconds", "Age of the oldest mail that is received, not answered."),
    ("tempmail_limit_bytes", "Upper limit of the bytes of mail on the disk, by scope."),
    ("tempmail_message_partitions", "Attached pairs of partitions."),
    ("tempmail_not_ready", "1 while the process is not ready because of this component, else 0."),
    ("tempmail_operator_condition", "Objects by kind, condition type and condition status."),
    ("tempmail_operator_crd_missing", "Kinds that the API server does not serve."),
    ("tempmail_operator_leads", "1 if this operator leads, else 0."),
    ("tempmail_operator_objects_in_backoff", "Objects that are retried after an error."),
    ("tempmail_operator_orphans", "Rows whose objects vanished without being finalized."),
    ("tempmail_sealed_values", "Sealed values by the key that sealed them."),
    ("tempmail_smtp_connections", "Open SMTP connections."),
    ("tempmail_stream_poll_age_seconds", "Time since the last successful poll of the stream."),
    ("tempmail_streams", "Open streams of server-sent events."),
    ("tempmail_subscribers", "Open long-polls, streams and WebSockets together."),
    ("tempmail_used_bytes", "Bytes of mail on the disk, by scope."),
    ("tempmail_webhook_claim_age_seconds", "Time since webhooks were claimed, or none was due."),
    ("tempmail_webhook_oldest_pending_seconds", "Age of the oldest event that waits for a webhook."),
    ("tempmail_webhook_requests_in_flight", "Requests to webhook receivers in flight."),
    ("tempmail_webhooks_claimed", "Webhooks that this process has claimed."),
    ("tempmail_webhooks_pending", "Webhooks with pending events."),
    ("tempmail_websockets", "Open WebSockets."),
    ("workqueue_depth", "Objects that wait in the work queue of a kind."),
];

/// Names of the histograms, and what they measure.
pub const HISTOGRAMS: &[(&str, &str)] = &[
    ("tempmail_answer_seconds", "Time from the end of a mail's data to the answer for a client that waited."),
    ("tempmail_dns_check_seconds", "Duration of the checks of custom domains."),
    ("tempmail_http_request_seconds", "Duration of HTTP requests."),
    ("tempmail_ingest_batch_mails", "Mails in a commit."),
    ("tempmail_ingest_commit_seconds", "Duration of the commits of mail."),
    ("tempmail_operator_reconcile_seconds", "Duration of reconciliations."),
    ("tempmail_webhook_attempt_seconds", "Duration of webhook attempts."),
    ("rest_client_request_duration_seconds", "Time to the response of the API server of Kubernetes."),
    ("workqueue_queue_duration_seconds", "Time that an object waits in the work queue of a kind."),
    ("workqueue_work_duration_seconds", "Time that a reconciliation from the work queue takes."),
];

/// Describes all metrics to the installed recorder.
pub(super) fn describe() {
    for &(name, text) in COUNTERS {
        describe_counter!(name, text);
    }
    for &(name, text) in GAUGES {
        describe_gauge!(name, text);
    }
    for &(name, text) in HISTOGRAMS {
        describe_histogram!(name, text);
    }
}
