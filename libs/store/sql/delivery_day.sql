-- Partitions of `webhook_delivery`: one a day, dropped whole.

-- Creates the partition of the day of a time; does nothing where it exists.
CREATE OR REPLACE FUNCTION ensure_delivery_partition(p_at timestamptz) RETURNS void
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

-- Drops the partitions of days that ended before a time; returns how many. Waits 100 ms for a lock, then
-- fails: the caller tries again later.
CREATE OR REPLACE FUNCTION drop_delivery_partitions(p_before timestamptz) RETURNS integer
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
