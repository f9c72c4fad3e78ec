-- The generations of the stream, oldest first. One begins where the database may have lost mail that was numbered:
-- after a restore, or with a standby that took over. Positions after `base` are then given a second time.
CREATE TABLE stream_generation (
    id       uuid PRIMARY KEY,
    ordinal  bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    -- The last position when it began.
    base     bigint NOT NULL,
    began_at timestamptz NOT NULL DEFAULT now() /* lease */
);
INSERT INTO stream_generation (id, base) SELECT generation, 0 FROM stream;
