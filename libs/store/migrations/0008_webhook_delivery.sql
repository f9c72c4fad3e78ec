-- Webhooks: events that wait for delivery, who delivers them, and the attempts by day.

-- Events --------------------------------------------------------------------------

-- One row an event and webhook, from the commit of its mail on until it is delivered or dropped.
-- What it tells is read from its message when it is sent, so no content is kept here. No foreign
-- key: mail never waits for what is done to a webhook. Events of one that is gone are forgotten later.
CREATE TABLE webhook_event (
    webhook  uuid NOT NULL,
    seq      bigint NOT NULL,
    id       uuid NOT NULL,
    message  uuid NOT NULL,
    class    smallint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    PRIMARY KEY (webhook, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN webhook_event.seq IS 'place of the message in the stream: the order of delivery';
COMMENT ON COLUMN webhook_event.id IS 'evt_… of every attempt';
COMMENT ON COLUMN webhook_event.message IS 'message.id, with class where it is stored';

-- A lane a webhook ------------------------------------------------------------------

ALTER TABLE webhook
    ADD COLUMN due_at timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN failed_at timestamptz,
    ADD COLUMN holder uuid,
    ADD COLUMN held_until timestamptz;
COMMENT ON COLUMN webhook.due_at IS 'no attempt before; business time';
COMMENT ON COLUMN webhook.failed_at IS 'when the last failure that counts was recorded: attempts that began before it do not count';
COMMENT ON COLUMN webhook.holder IS 'the process that has its events in hand; only what that one records counts';
COMMENT ON COLUMN webhook.held_until IS 'time of the server, between live processes';

-- Records attempts of one webhook in the order in which they ended, and what follows from them.
-- p_error: null for a success. p_gap: time to the next attempt after the first, second, … failure in
-- a row; one failure more than there are gaps disables the webhook and drops what waits. p_retry_after
-- (null: not asked for) is honoured up to twice the gap. 'fenced' where the webhook is not in the
-- hands of p_holder: then nothing is recorded. Else 'active' or 'disabled'. Attempts that are recorded
-- already, since the caller did not learn of it, change nothing.
CREATE FUNCTION record_deliveries(
    p_webhook uuid, p_holder uuid, p_now timestamptz, p_gap interval[],
    p_seq bigint[], p_event uuid[], p_attempt integer[], p_began timestamptz[], p_delivery uuid[],
    p_status_code integer[], p_error text[], p_duration_ms integer[], p_retry_after interval[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_webhook webhook;
    v_gap     interval;
BEGIN
    SELECT * INTO v_webhook FROM webhook WHERE id = p_webhook AND holder = p_holder FOR NO KEY UPDATE;
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
    UPDATE webhook_event e SET attempts = d.attempt
      FROM unnest(p_seq, p_error, p_attempt) AS d (seq, error, attempt)
     WHERE e.webhook = p_webhook AND e.seq = d.seq AND d.error IS NOT NULL;

    FOR i IN 1 .. cardinality(p_seq) LOOP
        IF p_error[i] IS NULL THEN
            v_webhook.failure_count := 0;
            v_webhook.last_triggered_at := p_now;
            v_webhook.due_at := '-infinity';
        ELSIF v_webhook.failed_at IS NULL OR p_began[i] > v_webhook.failed_at THEN
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

-- Attempts by day -------------------------------------------------------------------

-- A partition a day, dropped when its week is over: also the rows of a webhook that is gone by then.
ALTER TABLE webhook_delivery RENAME TO webhook_delivery_before;
ALTER TABLE webhook_delivery_before RENAME CONSTRAINT webhook_delivery_pkey TO webhook_delivery_before_pkey;
CREATE TABLE webhook_delivery (LIKE webhook_delivery_before INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING COMMENTS)
    PARTITION BY RANGE (id);
ALTER TABLE webhook_delivery ADD PRIMARY KEY (webhook, id);

-- Makes the partition of the day of a moment; does nothing where it is there.
CREATE FUNCTION ensure_delivery_day(p_at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_day   timestamptz := date_bin('1 day', p_at, 'epoch'::timestamptz);
    v_table text := 'webhook_delivery_' || extract(epoch FROM v_day)::bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.delivery_day'));
    IF to_regclass(quote_ident(v_table)) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE webhook_delivery INCLUDING ALL)', v_table);
        EXECUTE format('ALTER TABLE webhook_delivery ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            v_table, time_id(v_day), time_id(v_day + interval '1 day'));
    END IF;
END $$;

-- Drops the partitions of days that ended before a moment. Gives up early where somebody reads
-- them: the caller tries again later.
CREATE FUNCTION drop_delivery_days(p_before timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
    v_table text;
    v_count integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.delivery_day'));
    FOR v_table IN
        SELECT c.relname FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname ~ '^webhook_delivery_[0-9]+$'
          AND to_timestamp(substring(c.relname FROM '[0-9]+$')::bigint) + interval '1 day' <= p_before
    LOOP
        EXECUTE format('DROP TABLE %I', v_table);
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END $$;

DO $$
DECLARE
    v_day timestamptz;
BEGIN
    FOR v_day IN SELECT DISTINCT date_bin('1 day', id_time(id), 'epoch'::timestamptz) FROM webhook_delivery_before LOOP
        PERFORM ensure_delivery_day(v_day);
    END LOOP;
    INSERT INTO webhook_delivery SELECT * FROM webhook_delivery_before;
    DROP TABLE webhook_delivery_before;
END $$;

-- Final delivery ----------------------------------------------------------------------

-- As before; events for webhooks are stored with the mail.
CREATE OR REPLACE FUNCTION accept_mail(
    p_free_class smallint, p_inbox_bytes bigint, p_now timestamptz,
    p_mail uuid[], p_raw bytea[], p_for_at integer[], p_sender text[], p_from_text text[],
    p_from_email text[], p_subject text[], p_preview text[], p_sole boolean[],
    p_rcpt_of integer[], p_rcpt_id uuid[], p_rcpt_address text[], p_rcpt_base text[],
    p_rcpt_domain text[], p_rcpt_key uuid[], p_rcpt_reserved smallint[], p_rcpt_size integer[],
    OUT o_verdict smallint[], OUT o_seq bigint[], OUT o_class smallint[], OUT o_tenant uuid[],
    OUT o_owner uuid[], OUT o_inbox uuid[]
) LANGUAGE plpgsql
-- The plans that fit any number of rows, planned once a connection.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    c_shared CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    c_whole  CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    v_seq    bigint;
    v_kind   smallint[];
    v_refused integer[];
BEGIN
    -- First the stream: what follows sees all that was committed before it.
    SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;

    -- Whose it is, in the order of the recipients.
    SELECT array_agg(x.verdict), array_agg(x.kind), array_agg(x.owner), array_agg(x.inbox),
           array_agg(x.class), array_agg(x.tenant)
      INTO o_verdict, v_kind, o_owner, o_inbox, o_class, o_tenant
      FROM (SELECT (CASE WHEN d.id IS NOT NULL
                              AND m.removed_at IS NULL
                              AND t.suspended IS NOT TRUE
                              AND (k.kind <> 0 OR (r.reserved = 0 AND d.shared_inboxes)) THEN 0
                         ELSE 1 END)::smallint AS verdict,
                   k.kind,
                   CASE k.kind WHEN 0 THEN c_shared WHEN 1 THEN m.id WHEN 2 THEN d.id ELSE t.id END AS owner,
                   coalesce(m.id, r.key) AS inbox,
                   coalesce(t.retention_hours, p_free_class) AS class,
                   t.id AS tenant
              FROM unnest(p_rcpt_base, p_rcpt_domain, p_rcpt_key, p_rcpt_reserved) WITH ORDINALITY
                       AS r (base, domain, key, reserved, ord)
              LEFT JOIN domain d ON d.name = r.domain AND d.serves
              LEFT JOIN mailbox m ON m.domain = d.id AND m.local_part = r.base
                                 AND (m.removed_at IS NULL OR m.held_until > p_now)
              CROSS JOIN LATERAL (SELECT (CASE WHEN m.id IS NOT NULL THEN 1 WHEN d.tenant IS NOT NULL THEN 2
                                               WHEN r.reserved = 2 THEN 3 ELSE 0 END)::smallint AS kind) k
              LEFT JOIN tenant t ON t.id = coalesce(d.tenant, m.tenant, CASE k.kind
                                               WHEN 3 THEN '00000000-0000-7000-8000-000000000001'::uuid END)
             ORDER BY r.ord) x;

    -- Whether there is room: mailboxes, addresses under custom domains, tenants. Shared
    -- inboxes have no rows of their own here.
    IF EXISTS (SELECT FROM unnest(v_kind) AS kind WHERE kind <> 0) THEN
        SELECT array_agg(CASE
                   WHEN r.verdict <> 0 OR r.kind = 0 THEN r.verdict
                   WHEN r.kind = 1 AND scope_used(r.inbox, p_now) + r.inbox_need > b.quota
                                   AND mailbox_used(r.inbox, p_now) + r.inbox_need > b.quota THEN 2
                   WHEN r.kind <> 1 AND scope_used(r.inbox, p_now) + r.inbox_need > p_inbox_bytes THEN 2
                   WHEN scope_used(t.id, p_now) + r.tenant_need > t.mailbox_bytes * t.mailbox_limit THEN 2
                   ELSE 0 END::smallint ORDER BY r.ord)
          INTO o_verdict
          FROM (SELECT *, sum(u.size) OVER (PARTITION BY u.inbox) AS inbox_need,
                          sum(u.size) OVER (PARTITION BY u.tenant) AS tenant_need
                  FROM unnest(o_verdict, v_kind, o_inbox, o_tenant, p_rcpt_size) WITH ORDINALITY
                           AS u (verdict, kind, inbox, tenant, size, ord)) r
          LEFT JOIN mailbox b ON r.kind = 1 AND b.id = r.inbox
          LEFT JOIN tenant t ON t.id = r.tenant;
    END IF;

    -- All recipients of a mail or none; what is stored is numbered.
    SELECT array_agg(DISTINCT u.of) INTO v_refused
      FROM unnest(o_verdict, p_rcpt_of) AS u (verdict, of) WHERE u.verdict <> 0;
    IF v_refused IS NULL THEN
        o_seq := ARRAY(SELECT v_seq + ord FROM generate_series(1, cardinality(p_rcpt_of)) AS ord);
    ELSE
        SELECT array_agg(CASE WHEN stored THEN v_seq + place END ORDER BY ord),
               array_agg(CASE WHEN verdict = 0 AND NOT stored THEN 2::smallint ELSE verdict END ORDER BY ord)
          INTO o_seq, o_verdict
          FROM (SELECT u.*, u.of <> ALL (v_refused) AS stored,
                       count(*) FILTER (WHERE u.of <> ALL (v_refused)) OVER (ORDER BY u.ord) AS place
                  FROM unnest(o_verdict, p_rcpt_of) WITH ORDINALITY AS u (verdict, of, ord)) x;
    END IF;

    INSERT INTO raw (mail, class, recipients, for_at, data)
    SELECT p_mail[s.of], s.class, count(*), p_for_at[s.of], p_raw[s.of]
      FROM unnest(p_rcpt_of, o_class, o_seq) AS s (of, class, seq)
     WHERE s.seq IS NOT NULL
     GROUP BY s.of, s.class;

    INSERT INTO message (id, inbox, owner, mail, seq, size, class, owner_kind, sole, tenant,
                         address, sender, from_text, from_email, subject, preview)
    SELECT s.id, s.inbox, s.owner, p_mail[s.of], s.seq, s.size, s.class, s.kind,
           p_sole[s.of], s.tenant, s.address, p_sender[s.of], p_from_text[s.of], p_from_email[s.of],
           p_subject[s.of], p_preview[s.of]
      FROM unnest(p_rcpt_id, o_inbox, o_owner, p_rcpt_of, o_seq, p_rcpt_size, o_class, v_kind, o_tenant,
                  p_rcpt_address) AS s (id, inbox, owner, of, seq, size, class, kind, tenant, address)
     WHERE s.seq IS NOT NULL;

    INSERT INTO usage AS u (scope, class, slot, bytes)
    SELECT x.scope, s.class, slot_start(s.class, id_time(s.id)) AS slot, sum(s.size)
      FROM unnest(p_rcpt_id, o_class, o_seq, p_rcpt_size, v_kind, o_inbox, o_tenant)
               AS s (id, class, seq, size, kind, inbox, tenant)
      CROSS JOIN LATERAL (VALUES (c_whole), (CASE s.kind WHEN 0 THEN c_shared ELSE s.inbox END), (s.tenant)) AS x (scope)
     WHERE s.seq IS NOT NULL AND x.scope IS NOT NULL
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (scope, class, slot) DO UPDATE SET bytes = u.bytes + excluded.bytes;

    -- What webhooks are told of it waits from the same commit on. It has no content: that is the
    -- message's, and goes with it.
    IF EXISTS (SELECT FROM unnest(v_kind, o_tenant) AS s (kind, tenant) WHERE s.kind = 1 AND s.tenant IS NOT NULL) THEN
        INSERT INTO webhook_event (webhook, seq, id, message, class)
        SELECT w.id, s.seq, gen_random_uuid(), s.id, s.class
          FROM unnest(p_rcpt_id, o_class, o_seq, v_kind, o_tenant) AS s (id, class, seq, kind, tenant)
         CROSS JOIN LATERAL (
                  -- OFFSET 0: those of one tenant at a time, by their index.
                  SELECT w.id FROM webhook w
                   WHERE w.tenant = s.tenant AND w.status = 'active' AND 'email.received' = ANY (w.events)
                  OFFSET 0) w
         WHERE s.seq IS NOT NULL AND s.kind = 1;
    END IF;

    v_seq := (SELECT max(seq) FROM unnest(o_seq) AS seq);
    IF v_seq IS NOT NULL THEN
        UPDATE stream SET seq = v_seq;
    END IF;
END $$;
