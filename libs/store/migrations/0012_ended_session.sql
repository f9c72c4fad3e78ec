-- Pro sessions that were ended before their time: a session is a JWT, and goes on by itself. `worker` deletes what has
-- expired.
CREATE TABLE ended_session (
    -- The session, with the time at which it began.
    id uuid PRIMARY KEY
);
