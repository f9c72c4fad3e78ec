-- The tenant that owns what the sink of `tempmail up --sink` receives; at most one.
ALTER TABLE tenant ADD COLUMN is_sink boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX tenant_is_sink ON tenant (is_sink) WHERE is_sink;
