-- Attempts to deliver events: recorded with what follows from them, in partitions of one day, which are dropped whole.

-- Records attempts of one webhook in the order in which they ended, and what follows from them.
-- p_error: null for a success. p_gap: time to the next attempt after the first, second, … failure: of the webhook those
-- in a row, of an event its own. One failure more than there are gaps: the event is given up, or the webhook is disabled
-- and its pending events are deleted. p_retry_after (null: not requested) is honoured up to twice the gap. Attempts that
-- are recorded already, because the caller lost the answer, change nothing. o_outcome is fenced where the lease is not
-- p_lease_holder's: then nothing is recorded; else active or disabled, with the failures in a row and when the webhook
-- is due (-infinity: at once).
CREATE OR REPLACE FUNCTION record_deliveries(
    p_webhook uuid, p_lease_holder uuid, p_now timestamptz, p_gap interval[],
    p_seq bigint[], p_event uuid[], p_mailbox uuid[], p_attempt integer[], p_started_at timestamptz[],
    p_delivery uuid[], p_status_code integer[], p_error text[], p_detail text[], p_duration_ms integer[],
    p_retry_after interval[],
    OUT o_outcome text, OUT o_failure_count integer, OUT o_due_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    v_webhook record;
    v_gap     interval;
    v_counts  boolean;
BEGIN
    SELECT w.status, w.failure_count, w.failing_mailboxes, w.failed_at, w.last_triggered_at, w.due_at INTO v_webhook
      FROM webhook w WHERE w.id = p_webhook AND w.lease_holder = p_lease_holder FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        o_outcome := 'fenced';
        RETURN;
    END IF;
    INSERT INTO webhook_delivery (webhook, id, event_type, event_id, status_code, error, detail, attempt, duration_ms,
                                  given_up)
    SELECT p_webhook, d.id, 'email.received', 'evt_' || d.event, d.status_code, d.error, d.detail, d.attempt,
           d.duration_ms, d.error IS NOT NULL AND d.attempt > cardinality(p_gap)
      FROM unnest(p_delivery, p_event, p_status_code, p_error, p_detail, p_attempt, p_duration_ms)
               AS d (id, event, status_code, error, detail, attempt, duration_ms)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        DELETE FROM webhook_event e
         USING unnest(p_seq, p_error, p_attempt) AS d (seq, error, attempt)
         WHERE e.webhook = p_webhook AND e.seq = d.seq AND (d.error IS NULL OR d.attempt > cardinality(p_gap));
        UPDATE webhook_event e
           SET attempts = d.attempt,
               due_at = p_now + least(greatest(p_gap[d.attempt], d.retry_after), 2 * p_gap[d.attempt])
          FROM unnest(p_seq, p_error, p_attempt, p_retry_after) AS d (seq, error, attempt, retry_after)
         WHERE e.webhook = p_webhook AND e.seq = d.seq AND d.error IS NOT NULL;

        IF v_webhook.failure_count = 0 THEN
            v_webhook.failing_mailboxes := '{}';
        END IF;
        FOR i IN 1 .. cardinality(p_seq) LOOP
            IF p_error[i] IS NULL THEN
                v_webhook.failure_count := 0;
                v_webhook.failing_mailboxes := '{}';
                v_webhook.last_triggered_at := p_now;
                v_webhook.due_at := '-infinity';
                CONTINUE;
            END IF;
            -- What was in flight together counts once, for the webhook and for each mailbox.
            v_counts := v_webhook.failed_at IS NULL OR p_started_at[i] > v_webhook.failed_at;
            IF v_counts OR p_mailbox[i] <> ALL (v_webhook.failing_mailboxes) THEN
                v_webhook.failing_mailboxes := v_webhook.failing_mailboxes || p_mailbox[i];
            END IF;
            IF v_counts THEN
                v_webhook.failure_count := v_webhook.failure_count + 1;
                v_webhook.failed_at := p_now;
                v_gap := p_gap[v_webhook.failure_count];
                -- A receiver that responds may refuse only this event: the next one is tried at once.
                v_webhook.due_at := CASE
                    WHEN v_webhook.failure_count > 1 OR p_error[i] <> 'http_status'
                        THEN p_now + least(greatest(v_gap, p_retry_after[i]), 2 * v_gap)
                    WHEN p_retry_after[i] IS NOT NULL THEN p_now + least(p_retry_after[i], 2 * v_gap)
                    ELSE '-infinity' END;
            END IF;
        END LOOP;
        IF v_webhook.failure_count > cardinality(p_gap) THEN
            v_webhook.status := 'disabled';
            v_webhook.due_at := '-infinity';
            DELETE FROM webhook_event WHERE webhook = p_webhook;
        END IF;
        UPDATE webhook
           SET failure_count = v_webhook.failure_count, failing_mailboxes = v_webhook.failing_mailboxes,
               last_triggered_at = v_webhook.last_triggered_at, due_at = v_webhook.due_at,
               failed_at = v_webhook.failed_at, status = v_webhook.status
         WHERE id = p_webhook;
    END IF;
    o_outcome := v_webhook.status;
    o_failure_count := v_webhook.failure_count;
    o_due_at := v_webhook.due_at;
END $$;

-- Creates the partition of the day of a time, within a week before and two days after now; does nothing where it exists.
CREATE OR REPLACE FUNCTION ensure_delivery_partition(p_at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_day  timestamptz := date_bin('1 day', p_at, 'epoch'::timestamptz);
    v_name text := 'webhook_delivery_' || extract(epoch FROM v_day)::bigint;
BEGIN
    IF (p_at > clock_timestamp() - clock_tolerance() - interval '7 days' /* bound */
        AND p_at < clock_timestamp() + clock_tolerance() + interval '2 days' /* bound */) IS NOT TRUE THEN
        RAISE EXCEPTION 'no attempt is made at %', p_at USING ERRCODE = 'TM003';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.delivery_partition'));
    IF to_regclass(quote_ident(v_name)) IS NULL THEN
        PERFORM create_partition('webhook_delivery', v_name, NULL, quote_literal(time_id(v_day)),
                                 quote_literal(time_id(v_day + interval '1 day')));
    END IF;
END $$;

-- Drops the partitions of days that ended before a time, which is at least a week ago: for so long attempts are listed.
-- Returns how many. Waits 100 ms for a lock, then fails: the caller retries later.
CREATE OR REPLACE FUNCTION drop_delivery_partitions(p_before timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '100ms' AS $$
BEGIN
    IF (p_before < clock_timestamp() + clock_tolerance() - interval '7 days' /* bound */) IS NOT TRUE THEN
        RAISE EXCEPTION 'attempts are listed that were made before %', p_before USING ERRCODE = 'TM003';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.delivery_partition'));
    RETURN drop_tables(ARRAY(
        SELECT c.relname FROM pg_class c
         WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname ~ '^webhook_delivery_[0-9]+$'
           AND c.relowner = (SELECT d.relowner FROM pg_class d WHERE d.oid = 'webhook_delivery'::regclass)
           AND to_timestamp(substring(c.relname FROM '[0-9]+$')::bigint) + interval '1 day' <= p_before));
END $$;
