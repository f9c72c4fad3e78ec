-- How many bytes a scope holds, by stored sums, so that mail does not wait for a count.

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
    v_usage usage;
BEGIN
    FOR v_usage IN
        SELECT * FROM usage u
         WHERE u.scope = p_scope AND u.starts < p_now - make_interval(hours => u.class)
           AND u.starts + partition_width(u.class) > p_now - make_interval(hours => u.class)
         ORDER BY u.class, u.starts
    LOOP
        class := v_usage.class;
        starts := v_usage.starts;
        oldest := time_id(p_now - make_interval(hours => v_usage.class));
        bytes := (SELECT coalesce(sum(m.size), 0) FROM visible_message m
                   WHERE m.class = v_usage.class AND m.inbox = p_scope
                     AND m.id >= greatest(v_usage.expired_before, time_id(v_usage.starts)) AND m.id < oldest);
        RETURN NEXT;
    END LOOP;
END $$;

-- Octets of the messages that a mailbox shows, exactly.
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

-- Takes what has expired out of the sums of scopes, so that `scope_used` is exact for them. Each message is
-- read once for it in its life.
CREATE OR REPLACE FUNCTION expire_usage(p_scopes uuid[], p_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_scope uuid;
BEGIN
    FOR v_scope IN SELECT DISTINCT scope FROM unnest(p_scopes) AS scope ORDER BY scope LOOP
        PERFORM lock_inbox(v_scope);
        PERFORM FROM usage u WHERE u.scope = v_scope ORDER BY u.class, u.starts FOR UPDATE;
        UPDATE usage u SET bytes = u.bytes - e.bytes, expired_before = e.oldest
          FROM expired_usage(v_scope, p_now) e
         WHERE u.scope = v_scope AND u.class = e.class AND u.starts = e.starts AND u.expired_before < e.oldest;
    END LOOP;
END $$;
