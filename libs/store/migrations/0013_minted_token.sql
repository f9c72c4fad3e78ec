-- Live tokens for one address, which another live token minted. A table of its own: programs of the version before would
-- take a row of `api_token` for a token that may do everything. `worker` deletes those that have expired.
CREATE TABLE minted_token (
    id          uuid PRIMARY KEY,
    -- The token that minted it, with which it ends.
    parent      uuid NOT NULL REFERENCES api_token (id) ON DELETE CASCADE,
    -- That of its parent.
    tenant      uuid NOT NULL,
    -- SHA-256 of the whole token; the token itself is not stored.
    hash        bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    -- The key of the exact address that it is for (`address_key` of mail/address.sql).
    address_key uuid NOT NULL,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX minted_token_parent ON minted_token (parent);
CREATE INDEX minted_token_tenant ON minted_token (tenant, expires_at);
CREATE INDEX minted_token_expired ON minted_token (expires_at);

-- The drop-in surfaces that a token is for. It is accepted there and nowhere else, and its hash is of a kind of its own;
-- empty: it is not for any.
ALTER TABLE api_token ADD COLUMN surfaces text[] NOT NULL DEFAULT '{}';
