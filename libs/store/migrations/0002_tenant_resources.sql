-- What tenants manage: custom domains with their verification, webhooks, and who may change
-- a thing. Business time is always an argument here, too.

-- Custom domains ------------------------------------------------------------

ALTER TABLE domain
    ADD COLUMN verify_status text NOT NULL DEFAULT 'verified'
        CHECK (verify_status IN ('pending', 'verified', 'failed')),
    ADD COLUMN verify_token text,
    ADD COLUMN deadline timestamptz,
    ADD COLUMN verified_at timestamptz,
    ADD COLUMN failure_reason text
        CHECK (failure_reason IN ('verification_timed_out', 'records_lost', 'claimed_by_another')),
    ADD COLUMN txt_ok boolean NOT NULL DEFAULT false,
    ADD COLUMN mx_ok boolean NOT NULL DEFAULT false,
    ADD COLUMN lost_days smallint NOT NULL DEFAULT 0,
    ADD COLUMN next_check_at timestamptz,
    ADD COLUMN checked_at timestamptz,
    ADD COLUMN claimed_until timestamptz,
    ADD COLUMN managed_by text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    ADD COLUMN removed_at timestamptz,
    ADD CHECK (tenant IS NULL OR serves = (verify_status = 'verified' AND removed_at IS NULL)),
    ADD CHECK ((verify_status = 'failed') = (failure_reason IS NOT NULL));
COMMENT ON COLUMN domain.verify_token IS 'what the TXT record carries; public, and the same when the tenant makes the domain again';
COMMENT ON COLUMN domain.deadline IS 'a pending domain fails then';
COMMENT ON COLUMN domain.txt_ok IS 'the TXT record was right when the name servers last answered';
COMMENT ON COLUMN domain.mx_ok IS 'the MX record was right when the name servers last answered';
COMMENT ON COLUMN domain.lost_days IS 'daily re-checks in a row that found either record wrong';
COMMENT ON COLUMN domain.next_check_at IS 'when the loop is to look again; null: never';
COMMENT ON COLUMN domain.checked_at IS 'when its owner last had it checked: once in 10 s';
COMMENT ON COLUMN domain.claimed_until IS 'a loop has it in hand until then (time of the server, between live processes)';
COMMENT ON COLUMN domain.removed_at IS 'its mail is being deleted; the row follows';
CREATE UNIQUE INDEX domain_of_tenant ON domain (tenant, name) WHERE tenant IS NOT NULL AND removed_at IS NULL;
CREATE INDEX domain_due ON domain (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX domain_removed ON domain (removed_at) WHERE removed_at IS NOT NULL;

-- One name equal to, above or below the other.
CREATE FUNCTION names_meet(a text, b text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT a = b OR right(a, length(b) + 1) = '.' || b OR right(b, length(a) + 1) = '.' || a
$$;

-- Mailboxes, tokens, tenants --------------------------------------------------

ALTER TABLE mailbox ADD COLUMN managed_by text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes'));
ALTER TABLE api_token ADD COLUMN managed_by text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes'));
ALTER TABLE tenant ADD COLUMN removed_at timestamptz;
COMMENT ON COLUMN tenant.removed_at IS 'its mail is being deleted; the row follows';

-- A purge of a whole owner: inbox is the owner's own id. Mail of a custom domain has the keys
-- of its addresses as inbox, so one row covers the domain.
COMMENT ON COLUMN purge.inbox IS 'an inbox, or the owner itself for everything it has';

-- Webhooks --------------------------------------------------------------------

CREATE TABLE webhook (
    id                uuid PRIMARY KEY,
    tenant            uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    url               text NOT NULL,
    events            text[] NOT NULL CHECK (cardinality(events) > 0),
    secret            bytea NOT NULL,
    status            text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
    failure_count     integer NOT NULL DEFAULT 0 CHECK (failure_count >= 0),
    last_triggered_at timestamptz,
    managed_by        text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    created_at        timestamptz NOT NULL
);
CREATE INDEX webhook_tenant ON webhook (tenant, created_at DESC);
COMMENT ON COLUMN webhook.secret IS 'sealed (AES-256-GCM) with a key of the installation, for this webhook alone';
COMMENT ON COLUMN webhook.failure_count IS 'failed attempts in a row';

-- One row an attempt; its time is that of its id (UUIDv7).
CREATE TABLE webhook_delivery (
    webhook     uuid NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    id          uuid NOT NULL,
    event_type  text NOT NULL,
    event_id    text NOT NULL,
    status_code integer NOT NULL,
    error       text CHECK (error IN ('timeout', 'connection_refused', 'dns_failure', 'tls_failure',
                                      'blocked_address', 'http_status', 'connection_failed')),
    attempt     integer NOT NULL CHECK (attempt > 0),
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    PRIMARY KEY (webhook, id)
);
COMMENT ON COLUMN webhook_delivery.status_code IS '0: there was no answer';
