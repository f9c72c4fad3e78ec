-- How many bytes a scope holds, by stored sums, so that mail does not wait for a count. Two measures:
--
-- An inbox (a mailbox, an address of a custom domain) counts what its owner reads: a mail's size once, however many of
-- its addresses received it, and a row for each further message.
--
-- A tenant, mail without a tenant, shared inboxes and the installation count what the disk holds: the compressed data
-- of a mail once in each of them, and a row for each message.

-- What the row of a message takes on the disk with its entries in indexes, rounded up.
CREATE OR REPLACE FUNCTION message_row_bytes() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 1024
$$;

-- What an inbox counts for its messages (one or more) of a mail, all of which have one size.
CREATE OR REPLACE FUNCTION inbox_bytes(p_size integer, p_messages bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_size + (p_messages - 1) * least(p_size, message_row_bytes())
$$;

-- What messages of a mail take on the disk with its data; nothing where there are none.
CREATE OR REPLACE FUNCTION stored_bytes(p_data integer, p_messages bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_messages > 0 THEN p_data + p_messages * message_row_bytes() ELSE 0 END
$$;

-- Octets of a scope, those of its expiring partitions whole: never too low. Inlined where it is called.
CREATE OR REPLACE FUNCTION scope_used(p_scope uuid, p_now timestamptz) RETURNS TABLE (bytes bigint)
LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(u.bytes), 0)::bigint FROM usage u
     WHERE u.scope = p_scope
       AND u.starts + partition_width(u.class) > p_now - make_interval(hours => u.class)
$$;

-- The partitions of a scope in which messages expire just now, one a class at most, with the bytes of those
-- that have expired and are still in usage.bytes.
CREATE OR REPLACE FUNCTION expired_usage(p_scope uuid, p_now timestamptz)
RETURNS TABLE (class smallint, starts timestamptz, oldest uuid, bytes bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_usage record;
BEGIN
    FOR v_usage IN
        SELECT u.class, u.starts, u.expired_before FROM usage u
         WHERE u.scope = p_scope AND u.starts < p_now - make_interval(hours => u.class)
           AND u.starts + partition_width(u.class) > p_now - make_interval(hours => u.class)
         ORDER BY u.class, u.starts
    LOOP
        class := v_usage.class;
        starts := v_usage.starts;
        oldest := time_id(p_now - make_interval(hours => v_usage.class));
        -- The messages of a mail have its millisecond: all of them have expired, or none.
        bytes := (SELECT coalesce(sum(x.bytes), 0)
                    FROM (SELECT inbox_bytes(max(m.size), count(*)) AS bytes FROM visible_message m
                           WHERE m.class = v_usage.class AND m.inbox = p_scope
                             AND m.id >= greatest(v_usage.expired_before, time_id(v_usage.starts)) AND m.id < oldest
                           GROUP BY m.mail) x);
        RETURN NEXT;
    END LOOP;
END $$;

-- Octets that a mailbox counts for the messages that it shows, exactly.
CREATE OR REPLACE FUNCTION mailbox_used(p_mailbox uuid, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT k.bytes FROM scope_used(p_mailbox, p_now) k)
         - (SELECT coalesce(sum(e.bytes), 0) FROM expired_usage(p_mailbox, p_now) e);
END $$;

-- Held by every statement that changes what an inbox has besides delivery, before it looks.
CREATE OR REPLACE FUNCTION lock_inbox(p_inbox uuid) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('tempmail.inbox ' || p_inbox, 0))
$$;

-- The same, unless another transaction holds it: then false, at once.
CREATE OR REPLACE FUNCTION try_lock_inbox(p_inbox uuid) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_try_advisory_xact_lock(hashtextextended('tempmail.inbox ' || p_inbox, 0))
$$;

-- Takes what has expired out of the sums of inboxes, so that `scope_used` is exact for them. Each message is
-- read once for it in its life. An inbox that its owner is changing is left out: the mail that asks for it is deferred,
-- and waits for nobody.
CREATE OR REPLACE FUNCTION expire_usage(p_scopes uuid[], p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_scopes CONSTANT uuid[] := ARRAY(SELECT DISTINCT s.scope FROM unnest(p_scopes) AS s (scope)
                                       WHERE try_lock_inbox(s.scope));
    v_scope  uuid[];
    v_class  smallint[];
    v_starts timestamptz[];
    v_oldest uuid[];
    v_bytes  bigint[];
BEGIN
    -- Mail to these inboxes waits for its locks, and need not wait for the disk: what a crash takes back is done again.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- First what may be much to read, then the rows, which that mail changes.
    SELECT array_agg(s.scope), array_agg(e.class), array_agg(e.starts), array_agg(e.oldest), array_agg(e.bytes)
      INTO v_scope, v_class, v_starts, v_oldest, v_bytes
      FROM unnest(v_scopes) AS s (scope) CROSS JOIN LATERAL expired_usage(s.scope, p_now) e;
    PERFORM FROM unnest(v_scope, v_class, v_starts) AS e (scope, class, starts)
      JOIN usage u ON u.scope = e.scope AND u.class = e.class AND u.starts = e.starts
     ORDER BY u.scope, u.class, u.starts FOR UPDATE OF u;
    UPDATE usage u SET bytes = u.bytes - e.bytes, expired_before = e.oldest
      FROM unnest(v_scope, v_class, v_starts, v_oldest, v_bytes) AS e (scope, class, starts, oldest, bytes)
     WHERE u.scope = e.scope AND u.class = e.class AND u.starts = e.starts AND u.expired_before < e.oldest;
END $$;
