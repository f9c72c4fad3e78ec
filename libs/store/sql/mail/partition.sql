-- Partitions of `message` and `raw`: one of each per retention class and time range, a row of `message_partition`.

-- Width of the time ranges of a class: 5 min for 1 h, else retention / 36.
CREATE OR REPLACE FUNCTION partition_width(class smallint) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT make_interval(secs => CASE class WHEN 1 THEN 300 ELSE class * 100 END)
$$;

-- Start of the time range of a class that contains a time.
CREATE OR REPLACE FUNCTION partition_start(class smallint, at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT date_bin(partition_width(class), at, 'epoch'::timestamptz)
$$;

-- Whether mail of a partition that ends at a time may still be kept.
CREATE OR REPLACE FUNCTION is_kept(p_class smallint, p_ends timestamptz) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT p_ends + make_interval(hours => p_class) > clock_timestamp() + clock_tolerance() /* bound */
$$;

-- Creates the partitions of a class for the time range that contains a time; false where they exist. The time is of mail
-- that is kept, and at most an hour and two partitions ahead.
CREATE OR REPLACE FUNCTION ensure_message_partition(p_class smallint, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_starts timestamptz := partition_start(p_class, p_at);
    v_ends   timestamptz := v_starts + partition_width(p_class);
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM v_starts)::bigint);
    v_from   text := format('%L, %L', p_class, time_id(v_starts));
    v_to     text := format('%L, %L', p_class, time_id(v_ends));
BEGIN
    -- A class that is none violates its domain.
    IF (p_class::retention_class IS NOT NULL
        AND p_at < clock_timestamp() + clock_tolerance() + interval '1 hour' + 2 * partition_width(p_class) /* bound */
        AND v_ends + make_interval(hours => p_class) > clock_timestamp() - clock_tolerance() /* bound */) IS NOT TRUE THEN
        RAISE EXCEPTION 'no mail of % h is accepted at %', p_class, p_at USING ERRCODE = 'TM003';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    IF EXISTS (SELECT FROM message_partition WHERE class = p_class AND starts = v_starts) THEN
        RETURN false;
    END IF;
    PERFORM create_partition('message', 'message_' || v_suffix, NULL, v_from, v_to);
    PERFORM create_partition('raw', 'raw_' || v_suffix, 'toast_tuple_target = 4080', v_from, v_to);
    INSERT INTO message_partition (class, starts, ends) VALUES (p_class, v_starts, v_ends);
    RETURN true;
END $$;

-- Detaches the partitions of one expired time range; does nothing where they are detached already, and refuses one whose
-- mail is kept. It needs an exclusive lock on the parents for an instant, and all mail waits behind it meanwhile: so it
-- fails where it does not get the lock in 10 ms, and the caller retries. The rows of `usage` are deleted before,
-- `drop_detached_partitions` frees the space after it.
CREATE OR REPLACE FUNCTION detach_message_partition(p_class smallint, p_starts timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '10ms' AS $$
DECLARE
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM p_starts)::bigint);
    v_ends   timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    SELECT p.ends INTO v_ends FROM message_partition p WHERE p.class = p_class AND p.starts = p_starts;
    IF NOT FOUND THEN
        RETURN;
    ELSIF is_kept(p_class, v_ends) THEN
        RAISE EXCEPTION 'mail of % h is kept that was accepted before %', p_class, v_ends USING ERRCODE = 'TM003';
    END IF;
    DELETE FROM message_partition WHERE class = p_class AND starts = p_starts;
    -- In the order in which accept_mail locks them.
    EXECUTE format('ALTER TABLE raw DETACH PARTITION %I', 'raw_' || v_suffix);
    EXECUTE format('ALTER TABLE message DETACH PARTITION %I', 'message_' || v_suffix);
END $$;

-- Drops the tables of expired time ranges that are no longer attached; returns how many. Only those of the schema's owner
-- are partitions.
CREATE OR REPLACE FUNCTION drop_detached_partitions() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    RETURN drop_tables(ARRAY(
        SELECT c.relname FROM pg_class c
         CROSS JOIN LATERAL regexp_match(c.relname, '^(?:message|raw)_([0-9]{1,3})_([0-9]{1,11})$') AS n (parts)
         CROSS JOIN LATERAL (SELECT n.parts[1]::smallint AS class, to_timestamp(n.parts[2]::bigint) AS starts) p
         WHERE c.relkind = 'r' AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
           AND c.relowner = (SELECT m.relowner FROM pg_class m WHERE m.oid = 'message'::regclass)
           AND NOT is_kept(p.class, p.starts + partition_width(p.class))));
END $$;
