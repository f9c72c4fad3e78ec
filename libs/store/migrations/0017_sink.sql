-- The tenant that owns what the sink of `tempmail up --sink` receives; at most one. Null for all others, so that its
-- index has one entry.
ALTER TABLE tenant ADD COLUMN is_sink boolean CHECK (is_sink);
CREATE UNIQUE INDEX tenant_is_sink ON tenant (is_sink);
