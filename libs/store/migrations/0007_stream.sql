-- The generation of the stream, and the server and history that it belongs to (`server_history` of mail/stream.sql).
ALTER TABLE stream
    ADD COLUMN generation uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN history text NOT NULL DEFAULT '';
UPDATE stream
   SET history = (pg_control_system()).system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
