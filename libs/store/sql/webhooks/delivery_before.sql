-- Recording for programs of the version before, whose schedule is the webhook's alone.

-- Records attempts of one webhook in the order in which they ended. An event is due again by its own time, and never given
-- up here: that version sends the oldest event first, tried or not.
-- p_error: null for a success. p_gap: time to the next attempt after the first, second, … failure in a row;
-- one failure more than there are gaps disables the webhook and deletes its pending events. p_retry_after
-- (null: not requested) is honoured up to twice the gap. Attempts that are recorded already, because the
-- caller lost the answer, change nothing. Answers fenced where the lease is not p_lease_holder's: then
-- nothing is recorded; else active or disabled.
CREATE OR REPLACE FUNCTION record_deliveries(
    p_webhook uuid, p_lease_holder uuid, p_now timestamptz, p_gap interval[],
    p_seq bigint[], p_event uuid[], p_attempt integer[], p_started_at timestamptz[], p_delivery uuid[],
    p_status_code integer[], p_error text[], p_duration_ms integer[], p_retry_after interval[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_webhook webhook;
    v_gap     interval;
BEGIN
    SELECT * INTO v_webhook FROM webhook WHERE id = p_webhook AND lease_holder = p_lease_holder FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'fenced';
    END IF;
    INSERT INTO webhook_delivery (webhook, id, event_type, event_id, status_code, error, attempt, duration_ms)
    SELECT p_webhook, d.id, 'email.received', 'evt_' || d.event, d.status_code, d.error, d.attempt, d.duration_ms
      FROM unnest(p_delivery, p_event, p_status_code, p_error, p_attempt, p_duration_ms)
               AS d (id, event, status_code, error, attempt, duration_ms)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN v_webhook.status;
    END IF;
    DELETE FROM webhook_event e
     USING unnest(p_seq, p_error) AS d (seq, error)
     WHERE e.webhook = p_webhook AND e.seq = d.seq AND d.error IS NULL;
    UPDATE webhook_event e SET attempts = d.attempt, due_at = p_now + p_gap[least(d.attempt, cardinality(p_gap))]
      FROM unnest(p_seq, p_error, p_attempt) AS d (seq, error, attempt)
     WHERE e.webhook = p_webhook AND e.seq = d.seq AND d.error IS NOT NULL;

    FOR i IN 1 .. cardinality(p_seq) LOOP
        IF p_error[i] IS NULL THEN
            v_webhook.failure_count := 0;
            v_webhook.last_triggered_at := p_now;
            v_webhook.due_at := '-infinity';
        ELSIF v_webhook.failed_at IS NULL OR p_started_at[i] > v_webhook.failed_at THEN
            v_webhook.failure_count := v_webhook.failure_count + 1;
            v_webhook.failed_at := p_now;
            v_gap := p_gap[v_webhook.failure_count];
            v_webhook.due_at := p_now + least(greatest(v_gap, p_retry_after[i]), 2 * v_gap);
        END IF;
    END LOOP;
    IF v_webhook.failure_count > cardinality(p_gap) THEN
        v_webhook.status := 'disabled';
        v_webhook.due_at := '-infinity';
        DELETE FROM webhook_event WHERE webhook = p_webhook;
    END IF;
    UPDATE webhook
       SET failure_count = v_webhook.failure_count, last_triggered_at = v_webhook.last_triggered_at,
           due_at = v_webhook.due_at, failed_at = v_webhook.failed_at, status = v_webhook.status
     WHERE id = p_webhook;
    RETURN v_webhook.status;
END $$;
