-- The first schema: who may have mail, the mail itself, and the one stream.
-- Business time is always an argument: nothing here asks the server for the time.

-- Tenants -------------------------------------------------------------------

CREATE TABLE tenant (
    id              uuid PRIMARY KEY,
    name            text NOT NULL UNIQUE,
    suspended       boolean NOT NULL DEFAULT false,
    retention_hours smallint NOT NULL CHECK (retention_hours IN (1, 6, 24, 72, 168, 720)),
    -- Every retention the tenant ever had: reads look in these classes only.
    classes         smallint[] NOT NULL,
    mailbox_limit   integer NOT NULL CHECK (mailbox_limit >= 0),
    domain_limit    integer NOT NULL CHECK (domain_limit >= 0),
    webhook_limit   integer NOT NULL CHECK (webhook_limit >= 0),
    token_limit     integer NOT NULL CHECK (token_limit >= 0),
    mailbox_bytes   bigint NOT NULL CHECK (mailbox_bytes > 0),
    created_at      timestamptz NOT NULL
);
COMMENT ON TABLE tenant IS 'Pro subscriber or team: owns tokens, custom domains and mailboxes';
COMMENT ON COLUMN tenant.mailbox_bytes IS 'quota of a new mailbox, octets; times mailbox_limit it bounds all mail of the tenant';

-- The built-in tenant that reads mail to postmaster and abuse.
INSERT INTO tenant VALUES
    ('00000000-0000-7000-8000-000000000001', 'platform', false, 72, '{72}', 100, 10, 1, 20, 52428800, 'epoch');

-- Retentions that mail without a tenant ever had (configuration `retention.free_hours`).
CREATE TABLE free_class (
    class smallint PRIMARY KEY CHECK (class IN (1, 6, 24, 72, 168, 720))
);

CREATE TABLE api_token (
    id           uuid PRIMARY KEY,
    tenant       uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('pro', 'live')),
    name         text NOT NULL,
    hint         text NOT NULL,
    hash         bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_token_tenant ON api_token (tenant, created_at DESC);
COMMENT ON COLUMN api_token.hash IS 'SHA-256 of the whole token; the token itself is nowhere';

-- Domains and mailboxes -----------------------------------------------------

CREATE TABLE domain (
    id             uuid PRIMARY KEY,
    name           text NOT NULL,
    tenant         uuid REFERENCES tenant (id) ON DELETE CASCADE,
    serves         boolean NOT NULL,
    shared_inboxes boolean NOT NULL DEFAULT true,
    is_default     boolean NOT NULL DEFAULT false,
    sort_order     integer NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL,
    CHECK (tenant IS NULL OR NOT is_default)
);
CREATE UNIQUE INDEX domain_serving ON domain (name) WHERE serves;
CREATE UNIQUE INDEX domain_default ON domain (is_default) WHERE is_default;
CREATE INDEX domain_tenant ON domain (tenant) WHERE tenant IS NOT NULL;
COMMENT ON COLUMN domain.tenant IS 'null: a system domain; else a custom domain of that tenant';
COMMENT ON COLUMN domain.serves IS 'mail is accepted and readable; a custom domain serves while it is verified';

CREATE TABLE mailbox (
    id             uuid PRIMARY KEY,
    domain         uuid NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    local_part     text NOT NULL,
    tenant         uuid REFERENCES tenant (id) ON DELETE CASCADE,
    quota          bigint NOT NULL CHECK (quota > 0),
    password_hash  text NOT NULL,
    password_epoch integer NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL,
    seen_at        timestamptz NOT NULL,
    removed_at     timestamptz,
    held_until     timestamptz,
    CHECK ((removed_at IS NULL) = (held_until IS NULL))
);
CREATE UNIQUE INDEX mailbox_address ON mailbox (domain, local_part);
CREATE INDEX mailbox_tenant ON mailbox (tenant, created_at DESC) WHERE tenant IS NOT NULL AND removed_at IS NULL;
CREATE INDEX mailbox_free_seen ON mailbox (seen_at) WHERE tenant IS NULL AND removed_at IS NULL;
CREATE INDEX mailbox_held ON mailbox (held_until) WHERE removed_at IS NOT NULL;
COMMENT ON COLUMN mailbox.tenant IS 'null: a free mailbox, which only its own JWT can read';
COMMENT ON COLUMN mailbox.password_epoch IS 'part of every mailbox JWT; a reset raises it and so ends the older ones';
COMMENT ON COLUMN mailbox.seen_at IS 'last sign-in or read; an idle free mailbox is removed';
COMMENT ON COLUMN mailbox.held_until IS 'the address of a removed mailbox is held so that nobody inherits its mail';

-- The one stream ------------------------------------------------------------

-- Its row is locked first by every statement that adds mail, and to the commit, so the
-- order of seq is the order of commits: `seq > cursor` never skips.
CREATE TABLE stream (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO stream VALUES (true, 0);

-- One row a recipient. owner_kind: 0 shared inbox, 1 mailbox, 2 custom domain, 3 platform.
-- The time of a message is the time in its id (UUIDv7).
CREATE TABLE message (
    id         uuid NOT NULL,
    inbox      uuid NOT NULL,
    owner      uuid NOT NULL,
    mail       uuid NOT NULL,
    seq        bigint NOT NULL,
    size       integer NOT NULL,
    class      smallint NOT NULL,
    owner_kind smallint NOT NULL,
    sole       boolean NOT NULL,
    is_read    boolean NOT NULL DEFAULT false,
    address    text NOT NULL,
    sender     text NOT NULL,
    from_text  text NOT NULL,
    from_email text NOT NULL,
    subject    text NOT NULL,
    preview    text NOT NULL,
    PRIMARY KEY (class, id)
) PARTITION BY RANGE (class, id);
CREATE INDEX message_inbox ON message (inbox, seq);
CREATE INDEX message_domain ON message (owner, seq) WHERE owner_kind = 2;
CREATE INDEX message_seq ON message USING brin (seq) WITH (pages_per_range = 32, autosummarize = on);
COMMENT ON COLUMN message.inbox IS 'the mailbox, or the key of the exact address where there is none (first 16 octets of its SHA-256)';
COMMENT ON COLUMN message.owner IS 'mailbox, custom domain, platform tenant, or nil for a shared inbox; decided when stored, never changed';
COMMENT ON COLUMN message.mail IS 'raw.mail; recipients of one mail and class share it';
COMMENT ON COLUMN message.size IS 'octets that /raw returns to this recipient';
COMMENT ON COLUMN message.class IS 'retention in hours';
COMMENT ON COLUMN message.sole IS 'the mail had one recipient, so its trace may name it';

-- Once a mail and retention class: trace field and data, zstd.
CREATE TABLE raw (
    mail       uuid NOT NULL,
    class      smallint NOT NULL,
    recipients integer NOT NULL,
    for_at     integer NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (class, mail)
) PARTITION BY RANGE (class, mail);
ALTER TABLE raw ALTER COLUMN data SET STORAGE EXTERNAL;
COMMENT ON COLUMN raw.recipients IS 'messages that still refer to it; the last one takes it along';
COMMENT ON COLUMN raw.for_at IS 'offset in the uncompressed data where the `for` clause goes';

-- Live partitions: a slot is one partition of message and one of raw.
CREATE TABLE slot (
    class  smallint NOT NULL,
    starts timestamptz NOT NULL,
    ends   timestamptz NOT NULL,
    PRIMARY KEY (class, starts)
);

-- Octets stored by scope and slot; goes with its slot, so expiry updates nothing. A scope is a
-- mailbox, the key of an address of a custom domain or of the platform, a tenant, nil for all
-- shared inboxes together, or max for everything. A single shared inbox has no row here: it
-- would cost every mail a random write; ingest bounds those itself.
CREATE TABLE usage (
    scope uuid NOT NULL,
    class smallint NOT NULL,
    slot  timestamptz NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (scope, class, slot)
) WITH (fillfactor = 70);

-- What was deleted by an owner and is still to be carried out: invisible at once.
CREATE TABLE purge (
    id        uuid PRIMARY KEY,
    inbox     uuid NOT NULL,
    owner     uuid NOT NULL,
    address   text,
    up_to_seq bigint NOT NULL
);
CREATE INDEX purge_inbox ON purge (inbox);
COMMENT ON COLUMN purge.address IS 'null: the whole inbox; else the messages to this exact address';

-- Time and partitions -------------------------------------------------------

CREATE FUNCTION id_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp((('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint) / 1000.0)
$$;

CREATE FUNCTION time_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
COMMENT ON FUNCTION time_id IS 'the lowest id of a moment';

CREATE FUNCTION slot_width(class smallint) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT make_interval(secs => CASE class WHEN 1 THEN 300 ELSE class * 100 END)
$$;
COMMENT ON FUNCTION slot_width IS '5 min for 1 h, else retention / 36';

CREATE FUNCTION slot_start(class smallint, at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT date_bin(slot_width(class), at, 'epoch'::timestamptz)
$$;

-- Makes the slot of a class that contains a moment; does nothing where it is there.
-- Tables are built apart and attached: CREATE … PARTITION OF would lock out ingest.
CREATE FUNCTION ensure_slot(p_class smallint, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_starts timestamptz := slot_start(p_class, p_at);
    v_ends   timestamptz := v_starts + slot_width(p_class);
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM v_starts)::bigint);
    v_table  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.slot'));
    IF EXISTS (SELECT FROM slot WHERE class = p_class AND starts = v_starts) THEN
        RETURN false;
    END IF;
    FOREACH v_table IN ARRAY ARRAY['message', 'raw'] LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', v_table || '_' || v_suffix, v_table);
        IF v_table = 'raw' THEN
            EXECUTE format('ALTER TABLE %I SET (toast_tuple_target = 4080)', 'raw_' || v_suffix);
        END IF;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L, %L) TO (%L, %L)',
            v_table, v_table || '_' || v_suffix, p_class, time_id(v_starts), p_class, time_id(v_ends));
    END LOOP;
    INSERT INTO slot VALUES (p_class, v_starts, v_ends);
    RETURN true;
END $$;

-- Takes one expired slot out of the tables. The parent is locked for an instant: the caller
-- sets a short lock_timeout and tries again, and clears the slot's rows of `usage` apart.
-- `drop_detached` then frees the space.
CREATE FUNCTION detach_slot(p_class smallint, p_starts timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM p_starts)::bigint);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.slot'));
    DELETE FROM slot WHERE class = p_class AND starts = p_starts;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- In the order in which accept_mail takes them.
    EXECUTE format('ALTER TABLE raw DETACH PARTITION %I', 'raw_' || v_suffix);
    EXECUTE format('ALTER TABLE message DETACH PARTITION %I', 'message_' || v_suffix);
END $$;

-- Drops tables of slots that are no longer attached; returns how many.
CREATE FUNCTION drop_detached() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_table text;
    v_count integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.slot'));
    FOR v_table IN
        SELECT c.relname FROM pg_class c
        WHERE c.relkind = 'r' AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
          AND c.relname ~ '^(message|raw)_[0-9]+_[0-9]+$'
    LOOP
        EXECUTE format('DROP TABLE %I', v_table);
        v_count := v_count + 1;
    END LOOP;
    RETURN v_count;
END $$;

-- Octets of the messages that a mailbox shows, exactly: whole slots from the sums, the slot
-- that is expiring just now by its messages; all by its messages while a deletion is still
-- being carried out.
CREATE FUNCTION mailbox_used(p_mailbox uuid, p_now timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM purge p WHERE p.inbox = p_mailbox) THEN (
        SELECT coalesce(sum(m.size), 0)::bigint
        FROM (SELECT DISTINCT u.class FROM usage u WHERE u.scope = p_mailbox) c
        JOIN message m ON m.class = c.class AND m.inbox = p_mailbox
            AND m.id >= time_id(p_now - make_interval(hours => c.class))
        WHERE NOT EXISTS (SELECT FROM purge p WHERE p.inbox = m.inbox AND p.owner = m.owner
            AND (p.address IS NULL OR p.address = m.address) AND m.seq <= p.up_to_seq)
    ) ELSE (
        SELECT coalesce(sum(CASE
            WHEN u.slot >= p_now - make_interval(hours => u.class) THEN u.bytes
            ELSE (SELECT coalesce(sum(m.size), 0) FROM message m
                  WHERE m.class = u.class AND m.inbox = p_mailbox
                    AND m.id >= time_id(p_now - make_interval(hours => u.class))
                    AND m.id < time_id(u.slot + slot_width(u.class)))
            END), 0)::bigint
        FROM usage u
        WHERE u.scope = p_mailbox
          AND u.slot + slot_width(u.class) > p_now - make_interval(hours => u.class)
    ) END
$$;

-- Octets of a scope, counting an expiring slot whole: never too low.
CREATE FUNCTION scope_used(p_scope uuid, p_now timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(u.bytes), 0)::bigint FROM usage u
    WHERE u.scope = p_scope
      AND u.slot + slot_width(u.class) > p_now - make_interval(hours => u.class)
$$;

-- Final delivery ------------------------------------------------------------

-- Stores a batch of mails in one statement: resolves every recipient's owner, checks the
-- bounds, numbers and inserts. A mail is stored for all of its recipients or not at all.
-- The stream's row is locked first; what follows runs on snapshots taken after that, so a
-- batch sees all that was committed before it in the stream.
--
-- p_rcpt_of points into the mail arrays (from 1). p_rcpt_reserved: 0 an ordinary local part,
-- 1 reserved on system domains, 2 kept for the platform tenant there. The answer has an
-- element a recipient; o_verdict: 0 stored, 1 no such recipient any more, 2 some bound is
-- reached, or the mail is refused for another recipient.
CREATE FUNCTION accept_mail(
    p_free_class smallint, p_inbox_bytes bigint, p_now timestamptz,
    p_mail uuid[], p_raw bytea[], p_for_at integer[], p_sender text[], p_from_text text[],
    p_from_email text[], p_subject text[], p_preview text[], p_sole boolean[],
    p_rcpt_of integer[], p_rcpt_id uuid[], p_rcpt_address text[], p_rcpt_base text[],
    p_rcpt_domain text[], p_rcpt_key uuid[], p_rcpt_reserved smallint[], p_rcpt_size integer[],
    OUT o_verdict smallint[], OUT o_seq bigint[], OUT o_owner uuid[], OUT o_inbox uuid[]
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
    v_class  smallint[];
    v_tenant uuid[];
    v_refused integer[];
BEGIN
    -- First the stream: what follows sees all that was committed before it.
    SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;

    -- Whose it is, in the order of the recipients.
    SELECT array_agg(x.verdict), array_agg(x.kind), array_agg(x.owner), array_agg(x.inbox),
           array_agg(x.class), array_agg(x.tenant)
      INTO o_verdict, v_kind, o_owner, o_inbox, v_class, v_tenant
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
                  FROM unnest(o_verdict, v_kind, o_inbox, v_tenant, p_rcpt_size) WITH ORDINALITY
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
      FROM unnest(p_rcpt_of, v_class, o_seq) AS s (of, class, seq)
     WHERE s.seq IS NOT NULL
     GROUP BY s.of, s.class;

    INSERT INTO message (id, inbox, owner, mail, seq, size, class, owner_kind, sole,
                         address, sender, from_text, from_email, subject, preview)
    SELECT s.id, s.inbox, s.owner, p_mail[s.of], s.seq, s.size, s.class, s.kind,
           p_sole[s.of], s.address, p_sender[s.of], p_from_text[s.of], p_from_email[s.of], p_subject[s.of],
           p_preview[s.of]
      FROM unnest(p_rcpt_id, o_inbox, o_owner, p_rcpt_of, o_seq, p_rcpt_size, v_class, v_kind,
                  p_rcpt_address) AS s (id, inbox, owner, of, seq, size, class, kind, address)
     WHERE s.seq IS NOT NULL;

    INSERT INTO usage AS u (scope, class, slot, bytes)
    SELECT x.scope, s.class, slot_start(s.class, id_time(s.id)) AS slot, sum(s.size)
      FROM unnest(p_rcpt_id, v_class, o_seq, p_rcpt_size, v_kind, o_inbox, v_tenant)
               AS s (id, class, seq, size, kind, inbox, tenant)
      CROSS JOIN LATERAL (VALUES (c_whole), (CASE s.kind WHEN 0 THEN c_shared ELSE s.inbox END), (s.tenant)) AS x (scope)
     WHERE s.seq IS NOT NULL AND x.scope IS NOT NULL
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (scope, class, slot) DO UPDATE SET bytes = u.bytes + excluded.bytes;

    v_seq := (SELECT max(seq) FROM unnest(o_seq) AS seq);
    IF v_seq IS NOT NULL THEN
        UPDATE stream SET seq = v_seq;
    END IF;
END $$;

-- Deletes messages with the raw data nobody refers to any more; returns the octets freed.
CREATE FUNCTION delete_messages(p_class smallint, p_ids uuid[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_freed bigint;
BEGIN
    PERFORM FROM raw r
    WHERE r.class = p_class
      AND r.mail IN (SELECT m.mail FROM message m WHERE m.class = p_class AND m.id = ANY (p_ids))
    ORDER BY r.mail FOR UPDATE;
    WITH gone AS (
        DELETE FROM message m WHERE m.class = p_class AND m.id = ANY (p_ids)
        RETURNING m.id, m.mail, m.inbox, m.owner, m.owner_kind, m.size
    ), per_mail AS (
        SELECT mail, count(*)::integer AS n FROM gone GROUP BY mail
    ), raw_kept AS (
        UPDATE raw r SET recipients = r.recipients - g.n FROM per_mail g
        WHERE r.class = p_class AND r.mail = g.mail AND r.recipients > g.n
    ), raw_gone AS (
        DELETE FROM raw r USING per_mail g
        WHERE r.class = p_class AND r.mail = g.mail AND r.recipients <= g.n
    ), scoped AS (
        SELECT g.*, slot_start(p_class, id_time(g.id)) AS slot,
               CASE g.owner_kind WHEN 1 THEN (SELECT b.tenant FROM mailbox b WHERE b.id = g.owner)
                                 WHEN 2 THEN (SELECT d.tenant FROM domain d WHERE d.id = g.owner)
                                 WHEN 3 THEN g.owner END AS tenant
        FROM gone g
    ), lowered AS (
        SELECT scope, slot, sum(size) AS bytes FROM (
            SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid AS scope, slot, size FROM scoped
            UNION ALL SELECT CASE owner_kind WHEN 0 THEN owner ELSE inbox END, slot, size FROM scoped
            UNION ALL SELECT tenant, slot, size FROM scoped WHERE tenant IS NOT NULL
        ) x GROUP BY scope, slot
    ), locked AS (
        SELECT u.scope, u.slot, l.bytes FROM usage u JOIN lowered l USING (scope, slot)
        WHERE u.class = p_class ORDER BY u.scope, u.slot FOR UPDATE OF u
    ), usage_lowered AS (
        UPDATE usage u SET bytes = u.bytes - l.bytes FROM locked l
        WHERE u.scope = l.scope AND u.class = p_class AND u.slot = l.slot
    )
    SELECT coalesce(sum(size), 0) INTO v_freed FROM gone;
    RETURN v_freed;
END $$;
