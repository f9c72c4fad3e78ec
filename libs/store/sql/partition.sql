-- Partitions of `message` and `raw`: one of each per retention class and time range, a row of
-- `message_partition`.

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
-- Tables are created separately and attached: CREATE … PARTITION OF would block ingest.
CREATE OR REPLACE FUNCTION ensure_message_partition(p_class smallint, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_starts timestamptz := partition_start(p_class, p_at);
    v_ends   timestamptz := v_starts + partition_width(p_class);
    v_suffix text := format('%s_%s', p_class, extract(epoch FROM v_starts)::bigint);
    v_table  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
    IF EXISTS (SELECT FROM message_partition WHERE class = p_class AND starts = v_starts) THEN
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
    INSERT INTO message_partition (class, starts, ends) VALUES (p_class, v_starts, v_ends);
    RETURN true;
END $$;

-- Detaches the partitions of one expired time range; does nothing where they are detached already. It needs the
-- parents for itself for an instant, and all mail waits behind it meanwhile: so it fails where it does not get
-- them in 10 ms, and the caller retries. The rows of `usage` are deleted before, `drop_detached_partitions`
-- frees the space after it.
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
DECLARE
    v_table text;
    v_count integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tempmail.message_partition'));
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
