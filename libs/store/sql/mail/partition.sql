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

-- Creates the partitions of a class for the time range that contains a time; false where they exist.
CREATE OR REPLACE FUNCTION ensure_message_partition(p_class smallint, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_starts timestamptz := partition_start(p_class, p_at);
    v_ends   timestamptz := v_starts + partition_width(p_class);
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM v_starts)::bigint);
    v_from   text := format('%L, %L', p_class, time_id(v_starts));
    v_to     text := format('%L, %L', p_class, time_id(v_ends));
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    IF EXISTS (SELECT FROM message_partition WHERE class = p_class AND starts = v_starts) THEN
        RETURN false;
    END IF;
    PERFORM create_partition('message', 'message_' || v_suffix, NULL, v_from, v_to);
    PERFORM create_partition('raw', 'raw_' || v_suffix, 'toast_tuple_target = 4080', v_from, v_to);
    INSERT INTO message_partition (class, starts, ends) VALUES (p_class, v_starts, v_ends);
    RETURN true;
END $$;

-- Detaches the partitions of one expired time range; does nothing where they are detached already. It needs an exclusive
-- lock on the parents for an instant, and all mail waits behind it meanwhile: so it fails where it does not get the lock
-- in 10 ms, and the caller retries. The rows of `usage` are deleted before, `drop_detached_partitions` frees the space
-- after it.
CREATE OR REPLACE FUNCTION detach_message_partition(p_class smallint, p_starts timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '10ms' AS $$
DECLARE
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM p_starts)::bigint);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    DELETE FROM message_partition WHERE class = p_class AND starts = p_starts;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- In the order in which accept_mail locks them.
    EXECUTE format('ALTER TABLE raw DETACH PARTITION %I', 'raw_' || v_suffix);
    EXECUTE format('ALTER TABLE message DETACH PARTITION %I', 'message_' || v_suffix);
END $$;

-- Drops the tables that are no longer attached; returns how many.
CREATE OR REPLACE FUNCTION drop_detached_partitions() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    RETURN drop_tables(ARRAY(
        SELECT c.relname FROM pg_class c
         WHERE c.relkind = 'r' AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
           AND c.relname ~ '^(message|raw)_[0-9]+_[0-9]+$'));
END $$;
