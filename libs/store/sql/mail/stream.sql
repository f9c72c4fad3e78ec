-- Generations of the stream. A position says what a client has seen only together with its generation: a database that
-- was restored, or a standby that took over without the last commits, gives the same positions to other mail.

-- The server, and its history: another server has another identifier, and a promotion and a recovery to a
-- moment begin another timeline, the first part of the name of a file of the log of writes.
CREATE OR REPLACE FUNCTION server_history() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this server is a standby' USING ERRCODE = 'read_only_sql_transaction';
    END IF;
    RETURN (pg_control_system()).system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
END $$;

-- Begins a generation on a server with this history; returns its base. The feed of changes is emptied: a server counts its
-- transactions by itself, so one with a number of another server may be over for no reader here, and each poll would
-- return it. Nothing is missed, since readers of the feed take everything as changed in another generation.
CREATE OR REPLACE FUNCTION begin_generation(p_history text) RETURNS bigint LANGUAGE sql AS $$
    UPDATE stream SET history = p_history, generation = gen_random_uuid() WHERE singleton;
    DELETE FROM change;
    INSERT INTO stream_generation (id, base) SELECT s.generation, s.seq FROM stream s WHERE s.singleton RETURNING base;
$$;

-- Begins a generation where the server has another history than the stream. Called over each connection that stores mail
-- before it does, and by those who serve it, so no position is given twice in a generation. Whether mail was lost can't be
-- known then; where none was, a generation that begins changes nothing for a client. Runs with the rights of the schema's
-- owner: no role may write generations by itself.
CREATE OR REPLACE FUNCTION ensure_generation() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_history text := server_history();
BEGIN
    IF NOT EXISTS (SELECT FROM stream WHERE singleton AND history = v_history) THEN
        -- Waits for mail that is being numbered; a second process finds the history changed.
        PERFORM FROM stream WHERE singleton AND history <> v_history FOR NO KEY UPDATE;
        IF FOUND THEN
            PERFORM begin_generation(v_history);
        END IF;
    END IF;
END $$;

-- Begins a generation, and ends every Pro session and minted token: what `tempmail database restored` does first. Returns
-- the base.
CREATE OR REPLACE FUNCTION database_restored(p_now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    -- For the order of locks see domains/name.sql: the stream is last.
    UPDATE api_token SET sessions_from = p_now;
    DELETE FROM minted_token;
    RETURN begin_generation(server_history());
END $$;
