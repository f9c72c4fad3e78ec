-- The clusters whose operators use the database. Each has an epoch of its own, so that the operators of two clusters do
-- not end each other's. Epochs are drawn from `operator`, so that one is never that of two clusters.
CREATE TABLE cluster (
    -- metadata.uid of the namespace kube-system.
    id           uuid PRIMARY KEY,
    -- The epoch of the operator that leads in it; null: only operators of an earlier version led.
    epoch        bigint UNIQUE,
    -- When that operator was last known to lead (server time, between live processes).
    heartbeat_at timestamptz NOT NULL DEFAULT now() /* lease */,
    -- Since when objects of other clusters may adopt its rows; no operator of it leads until it is admitted again.
    released_at  timestamptz
);
INSERT INTO cluster (id) SELECT DISTINCT cluster FROM resource;
