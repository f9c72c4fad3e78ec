-- Final delivery.

-- Stores a batch of mails in one statement: decides the owner of every recipient, checks the bounds, numbers
-- and inserts. A mail is stored for all of its recipients or for none.
--
-- The stream's row is changed first and held to the commit. What follows are statements of their own, on
-- snapshots taken after that, so a batch sees everything that was committed before it in the stream: owners,
-- bounds and order are exact.
--
-- Arrays are by mail, or (p_rcpt_…) by recipient; p_rcpt_of points into those by mail, from 1. p_accepted_at
-- is the time of the ids of a mail and its messages. p_raw is null where the data was stored before
-- (`store_raw_part`); that under another class than the owner has now is an error, TM002. p_raw_bytes is how long the
-- data is, wherever it is. p_rcpt_local_part and p_rcpt_reserved are as `address_owner` takes them. p_tenant_bytes: what
-- any one tenant may store now, besides its own limits.
--
-- The answer is by recipient. o_result: 0 stored; 1 there is no such recipient any more; 2 a bound is
-- reached by the sums that are kept (`expire_usage` makes them exact), or the mail is refused for another
-- recipient; 3 its tenant would store more than p_tenant_bytes. o_seq is null unless it is stored.
CREATE OR REPLACE FUNCTION accept_mail(
    p_free_class smallint, p_inbox_bytes bigint, p_tenant_bytes bigint, p_now timestamptz,
    p_mail uuid[], p_accepted_at timestamptz[], p_raw bytea[], p_raw_bytes integer[], p_for_clause_offset integer[],
    p_sender text[], p_from_text text[], p_from_email text[], p_subject text[], p_preview text[],
    p_single_recipient boolean[],
    p_rcpt_of integer[], p_rcpt_id uuid[], p_rcpt_address text[], p_rcpt_local_part text[],
    p_rcpt_domain text[], p_rcpt_key uuid[], p_rcpt_reserved smallint[], p_rcpt_size integer[],
    OUT o_result smallint[], OUT o_seq bigint[], OUT o_class smallint[], OUT o_tenant uuid[],
    OUT o_owner uuid[], OUT o_inbox uuid[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_count   CONSTANT integer := cardinality(p_rcpt_of);
    v_before  bigint;
    v_kind    smallint[];
    v_refused boolean;
    v_owned   boolean;
    v_missing   integer;
BEGIN
    -- First the stream: what follows sees all that was committed before it.
    UPDATE stream SET seq = seq + v_count RETURNING seq - v_count INTO STRICT v_before;

    -- Whose it is, in the order of the recipients.
    SELECT array_agg(x.result), array_agg(x.owner_kind), array_agg(x.owner), array_agg(x.inbox),
           array_agg(x.class), array_agg(x.tenant), array_agg(v_before + x.ord),
           bool_or(x.result <> 0), bool_or(x.owner_kind <> 0)
      INTO o_result, v_kind, o_owner, o_inbox, o_class, o_tenant, o_seq, v_refused, v_owned
      FROM (SELECT (CASE WHEN o.receives THEN 0 ELSE 1 END)::smallint AS result,
                   coalesce(o.owner_kind, 0::smallint) AS owner_kind,
                   coalesce(o.owner, '00000000-0000-0000-0000-000000000000') AS owner,
                   coalesce(o.mailbox, r.key) AS inbox,
                   coalesce(o.retention_hours, p_free_class) AS class,
                   o.tenant, r.ord
              FROM unnest(p_rcpt_local_part, p_rcpt_domain, p_rcpt_key, p_rcpt_reserved) WITH ORDINALITY
                       AS r (local_part, domain, key, reserved, ord)
              LEFT JOIN LATERAL address_owner(r.domain, r.local_part, r.reserved, p_now) o ON true
             ORDER BY r.ord) x;

    -- Whether it fits: mailboxes, addresses under custom domains, tenants. Each scope is looked up once.
    -- Shared inboxes have no sums of their own.
    IF v_owned THEN
        WITH rcpt AS (
            SELECT * FROM unnest(p_rcpt_of, o_result, v_kind, o_inbox, o_class, o_tenant, p_rcpt_size) WITH ORDINALITY
                              AS r (of, result, owner_kind, inbox, class, tenant, size, ord)
        ), full_inbox AS MATERIALIZED (
            SELECT n.inbox
              FROM (SELECT g.inbox, g.owner_kind, sum(g.bytes) AS bytes
                      FROM (SELECT r.inbox, r.owner_kind, inbox_bytes(max(r.size), count(*)) AS bytes FROM rcpt r
                             WHERE r.result = 0 AND r.owner_kind <> 0 GROUP BY r.of, r.inbox, r.owner_kind) g
                     GROUP BY 1, 2) n
             CROSS JOIN LATERAL scope_used(n.inbox, p_now) k
              LEFT JOIN mailbox b ON n.owner_kind = 1 AND b.id = n.inbox
             WHERE k.bytes + n.bytes > coalesce(b.quota, p_inbox_bytes)
        ), full_tenant AS MATERIALIZED (
            SELECT t.id, k.bytes + n.bytes > p_tenant_bytes AS by_share
              FROM (SELECT g.tenant, sum(g.bytes) AS bytes
                      FROM (SELECT r.tenant, stored_bytes(p_raw_bytes[r.of], count(*)) AS bytes FROM rcpt r
                             WHERE r.result = 0 AND r.tenant IS NOT NULL GROUP BY r.of, r.tenant, r.class) g
                     GROUP BY 1) n
              JOIN tenant t ON t.id = n.tenant
             CROSS JOIN LATERAL scope_used(t.id, p_now) k
             -- A product that a bigint does not hold would reject all mail of the tenant.
             WHERE k.bytes + n.bytes > least(t.mailbox_bytes::numeric * t.mailbox_limit, p_tenant_bytes)
        )
        SELECT array_agg(x.result ORDER BY x.ord), bool_or(x.result <> 0) INTO o_result, v_refused
          FROM (SELECT (CASE WHEN r.result <> 0 OR r.owner_kind = 0 THEN r.result
                             WHEN EXISTS (SELECT FROM full_tenant f WHERE f.id = r.tenant AND f.by_share) THEN 3
                             WHEN EXISTS (SELECT FROM full_inbox f WHERE f.inbox = r.inbox)
                               OR EXISTS (SELECT FROM full_tenant f WHERE f.id = r.tenant) THEN 2
                             ELSE 0 END)::smallint AS result, r.ord
                  FROM rcpt r) x;
    END IF;

    -- All recipients of a mail or none; what is stored is numbered without gaps.
    IF v_refused THEN
        WITH rcpt AS (
            SELECT u.result, u.ord, bool_or(u.result <> 0) OVER (PARTITION BY u.of) AS refused
              FROM unnest(o_result, p_rcpt_of) WITH ORDINALITY AS u (result, of, ord)
        )
        SELECT array_agg(CASE WHEN NOT x.refused THEN v_before + x.place END ORDER BY x.ord),
               array_agg(CASE WHEN x.result = 0 AND x.refused THEN 2::smallint ELSE x.result END ORDER BY x.ord)
          INTO o_seq, o_result
          FROM (SELECT r.result, r.ord, r.refused,
                       count(*) FILTER (WHERE NOT r.refused) OVER (ORDER BY r.ord) AS place FROM rcpt r) x;
        UPDATE stream SET seq = v_before + cardinality(array_remove(o_seq, NULL));
    END IF;

    -- Data that was stored before belongs to its messages from now on.
    IF array_position(p_raw, NULL) IS NOT NULL THEN
        WITH wanted AS (
            SELECT p_mail[s.of] AS mail, s.class, count(*) AS recipients
              FROM unnest(p_rcpt_of, o_class, o_seq) AS s (of, class, seq)
             WHERE s.seq IS NOT NULL AND p_raw[s.of] IS NULL
             GROUP BY 1, 2
        ), adopted AS (
            UPDATE raw r SET recipients = w.recipients FROM wanted w
             WHERE r.class = w.class AND r.mail = w.mail AND r.part = 0 AND r.recipients = 0
            RETURNING r.mail
        )
        SELECT (SELECT count(*) FROM wanted) - (SELECT count(*) FROM adopted) INTO v_missing;
        IF v_missing <> 0 THEN
            RAISE EXCEPTION 'the retention of a recipient has changed' USING ERRCODE = 'TM002';
        END IF;
    END IF;

    -- Rows that deletions change, too, are changed in the same order there: usage, then the partition.
    IF v_owned THEN
        WITH stored AS (
            SELECT * FROM unnest(p_rcpt_of, o_class, o_seq, p_rcpt_size, v_kind, o_inbox, o_tenant)
                              AS s (of, class, seq, size, owner_kind, inbox, tenant)
             WHERE s.seq IS NOT NULL AND s.owner_kind <> 0
        )
        INSERT INTO usage AS u (scope, class, starts, bytes)
        SELECT x.scope, x.class, x.starts, sum(x.bytes)
          FROM (SELECT s.inbox AS scope, s.class, partition_start(s.class, p_accepted_at[s.of]) AS starts,
                       inbox_bytes(max(s.size), count(*)) AS bytes
                  FROM stored s GROUP BY s.of, s.inbox, s.class
                UNION ALL
                SELECT s.tenant, s.class, partition_start(s.class, p_accepted_at[s.of]),
                       stored_bytes(p_raw_bytes[s.of], count(*))
                  FROM stored s WHERE s.tenant IS NOT NULL GROUP BY s.of, s.tenant, s.class) x
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (scope, class, starts) DO UPDATE SET bytes = u.bytes + excluded.bytes;

        -- Events for webhooks wait from the same commit on. They have no content: that is the message's, and
        -- goes with it. OFFSET 0: those of one tenant at a time, by their index.
        INSERT INTO webhook_event (webhook, seq, id, message, class, mailbox)
        SELECT w.id, s.seq, webhook_event_id(w.id, s.id), s.id, s.class, s.owner
          FROM unnest(p_rcpt_id, o_class, o_seq, v_kind, o_owner, o_tenant)
                   AS s (id, class, seq, owner_kind, owner, tenant)
         CROSS JOIN LATERAL (
                  SELECT w.id FROM webhook w
                   WHERE w.tenant = s.tenant AND w.status = 'active' AND 'email.received' = ANY (w.events)
                  OFFSET 0) w
         WHERE s.seq IS NOT NULL AND s.owner_kind = 1;
    END IF;

    WITH stored AS MATERIALIZED (
        SELECT * FROM unnest(p_rcpt_id, o_inbox, o_owner, p_rcpt_of, o_seq, p_rcpt_size, o_class, v_kind, o_tenant,
                             p_rcpt_address)
                          AS s (id, inbox, owner, of, seq, size, class, owner_kind, tenant, address)
         WHERE s.seq IS NOT NULL
    ), mails AS MATERIALIZED (
        SELECT s.of, s.class, p_raw_bytes[s.of] AS data, count(*) AS messages,
               count(*) FILTER (WHERE s.tenant IS NULL) AS free, count(*) FILTER (WHERE s.owner_kind = 0) AS shared
          FROM stored s GROUP BY s.of, s.class
    ), data AS (
        INSERT INTO raw (mail, class, part, recipients, for_clause_offset, stored_bytes, data)
        SELECT p_mail[m.of], m.class, 0, m.messages, p_for_clause_offset[m.of], m.data, p_raw[m.of]
          FROM mails m WHERE p_raw[m.of] IS NOT NULL
    ), rows AS (
        INSERT INTO message (id, inbox, owner, mail, seq, size, class, owner_kind, single_recipient, tenant,
                             address, sender, from_text, from_email, subject, preview)
        SELECT s.id, s.inbox, s.owner, p_mail[s.of], s.seq, s.size, s.class, s.owner_kind,
               p_single_recipient[s.of], s.tenant, s.address, p_sender[s.of], p_from_text[s.of],
               p_from_email[s.of], p_subject[s.of], p_preview[s.of]
          FROM stored s
    )
    UPDATE message_partition p
       SET bytes = p.bytes + x.bytes, free_bytes = p.free_bytes + x.free, shared_bytes = p.shared_bytes + x.shared
      FROM (SELECT m.class, partition_start(m.class, p_accepted_at[m.of]) AS starts,
                   sum(stored_bytes(m.data, m.messages)) AS bytes, sum(stored_bytes(m.data, m.free)) AS free,
                   sum(stored_bytes(m.data, m.shared)) AS shared
              FROM mails m GROUP BY 1, 2) x
     WHERE p.class = x.class AND p.starts = x.starts;
END $$;

-- Stores a part of a mail's data before its messages, in every class that they may have. Nothing refers to
-- it until `accept_mail` does: what is not accepted goes with its partition, or by `discard_raw`.
CREATE OR REPLACE FUNCTION store_raw_part(
    p_classes smallint[], p_mail uuid, p_part smallint, p_for_clause_offset integer, p_stored_bytes integer, p_data bytea
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO raw (mail, class, part, recipients, for_clause_offset, stored_bytes, data)
    SELECT p_mail, c.class, p_part, 0, p_for_clause_offset, p_stored_bytes, p_data FROM unnest(p_classes) AS c (class)
$$;

-- Deletes data that was stored before and is not accepted.
CREATE OR REPLACE FUNCTION discard_raw(p_classes smallint[], p_mail uuid) RETURNS void LANGUAGE sql AS $$
    DELETE FROM raw r
     WHERE r.class = ANY (p_classes) AND r.mail = p_mail
       AND EXISTS (SELECT FROM raw f WHERE f.class = r.class AND f.mail = p_mail AND f.part = 0 AND f.recipients = 0)
$$;
