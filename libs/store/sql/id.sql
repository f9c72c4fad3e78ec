-- Ids: UUIDv7 with a time, and the UUIDv8 of a webhook's event.

-- The time of an id, to the millisecond.
CREATE OR REPLACE FUNCTION id_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp((('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint) / 1000.0)
$$;

-- The lowest id of a time. Of functions that depend on no setting: only then is it inlined. With
-- `extract` of a timestamptz it would be parsed and planned at every call.
CREATE OR REPLACE FUNCTION time_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM at - 'epoch'::timestamptz) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid
$$;

-- A new id of a time.
CREATE OR REPLACE FUNCTION new_id(p_at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT overlay(overlay(gen_random_uuid()::text PLACING left(time_id(p_at)::text, 13) FROM 1)
                   PLACING '7' FROM 15)::uuid
$$;

-- The id of a webhook's event for a message: a UUIDv8 of the SHA-256 of both ids, so that it is the same whoever asks.
CREATE OR REPLACE FUNCTION webhook_event_id(p_webhook uuid, p_message uuid)
RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(set_byte(set_byte(d.digest, 6, (get_byte(d.digest, 6) & 15) | 128),
                           8, (get_byte(d.digest, 8) & 63) | 128), 'hex')::uuid
      FROM (SELECT substr(sha256(uuid_send(p_webhook) || uuid_send(p_message)), 1, 16) AS digest) d
$$;
