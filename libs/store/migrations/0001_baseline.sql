-- The tables. Their functions and triggers are in libs/store/sql.
-- Business time is always an argument: only what is marked `lease` asks the server for the time.

-- The schema itself -----------------------------------------------------------------

-- What was applied from libs/store/sql. An object that differs from its row was changed by hand.
CREATE TABLE schema_object (
    kind            text NOT NULL CHECK (kind IN ('function', 'view', 'trigger')),
    -- With types of arguments; of a trigger with its table: as DROP takes it.
    name            text NOT NULL,
    -- Empty: no file defines it any more, and programs of an earlier version may use it.
    file            text NOT NULL,
    -- SHA-256 of the text of the file that defines it.
    file_hash       bytea NOT NULL CHECK (octet_length(file_hash) = 32),
    -- SHA-256 of what Postgres showed of it when it was applied.
    definition_hash bytea NOT NULL CHECK (octet_length(definition_hash) = 32),
    -- Major version of that Postgres.
    server          integer NOT NULL,
    -- Schema version of the newest program that applied it or kept it.
    version         bigint NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE TABLE schema_compatibility (
    singleton       boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- The lowest schema version whose programs work with this schema.
    lowest_version  bigint NOT NULL
);

-- Audit -----------------------------------------------------------------------

-- Who made, changed or deleted what. Written by functions only (sql/audit.sql): no role has a right to write here. Its
-- time is that of its id (UUIDv7). A partition a month, dropped after 400 days.
CREATE TABLE audit (
    id      uuid NOT NULL PRIMARY KEY,
    -- A kind of actor and its id, such as `token 0190…`; or the process that acted by itself.
    actor   text NOT NULL CHECK (length(actor) <= 200),
    -- The login of the database.
    login   text NOT NULL,
    action  text NOT NULL,
    kind    text NOT NULL CHECK (kind IN ('tenant', 'domain', 'mailbox', 'token', 'session', 'webhook', 'setting')),
    -- Its id; the name of a setting.
    subject text NOT NULL,
    tenant  uuid
) PARTITION BY RANGE (id);
CREATE INDEX audit_tenant ON audit (tenant, id) WHERE tenant IS NOT NULL;

-- Entries that no worker has sent to the log yet.
CREATE TABLE audit_unlogged (
    id uuid PRIMARY KEY
);

-- Retention -------------------------------------------------------------------

-- How long mail is kept, hours.
CREATE DOMAIN retention_class AS smallint CHECK (VALUE IN (1, 6, 24, 72, 168, 720));

-- Every retention that mail without a tenant ever had (configuration `retention.free_hours`).
CREATE TABLE free_class (
    class retention_class PRIMARY KEY
);

-- Tenants and tokens ------------------------------------------------------------

-- Pro subscriber or team: owns tokens, custom domains, mailboxes and webhooks.
CREATE TABLE tenant (
    id              uuid PRIMARY KEY,
    name            text NOT NULL UNIQUE,
    suspended       boolean NOT NULL DEFAULT false,
    managed_by      text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    -- Retention of new mail.
    retention_hours retention_class NOT NULL,
    -- An array of the domain has a type of its own, which clients look up once a connection.
    -- Every retention the tenant ever had: reads look in these classes only.
    classes         smallint[] NOT NULL CHECK (classes <@ '{1, 6, 24, 72, 168, 720}'),
    mailbox_limit   integer NOT NULL CHECK (mailbox_limit >= 0),
    domain_limit    integer NOT NULL CHECK (domain_limit >= 0),
    webhook_limit   integer NOT NULL CHECK (webhook_limit >= 0),
    token_limit     integer NOT NULL CHECK (token_limit >= 0),
    -- Quota of a new mailbox, bytes; times mailbox_limit it bounds all mail of the tenant.
    mailbox_bytes   bigint NOT NULL CHECK (mailbox_bytes > 0),
    created_at      timestamptz NOT NULL,
    -- Its mail is being deleted; the row follows.
    removed_at      timestamptz
);
CREATE INDEX tenant_removed ON tenant (removed_at) WHERE removed_at IS NOT NULL;

-- The built-in tenant that reads mail to postmaster and abuse.
INSERT INTO tenant (id, name, retention_hours, classes, mailbox_limit, domain_limit, webhook_limit, token_limit,
                    mailbox_bytes, created_at)
VALUES ('00000000-0000-7000-8000-000000000001', 'platform', 72, '{72}', 100, 10, 1, 20, 52428800, 'epoch');

CREATE TABLE api_token (
    id           uuid PRIMARY KEY,
    tenant       uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('pro', 'live')),
    name         text NOT NULL,
    -- Last digits of the token.
    hint         text NOT NULL,
    -- SHA-256 of the whole token; the token itself is not stored.
    hash         bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    -- false: not yet delivered to its owner, and refused.
    active       boolean NOT NULL DEFAULT true,
    managed_by   text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    -- The id of the token that made it, or the name of what else did.
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_token_tenant ON api_token (tenant, created_at DESC);
CREATE INDEX api_token_created_by ON api_token (created_by);
-- When a token ended: it is listed for some days more.
CREATE INDEX api_token_ended ON api_token ((coalesce(revoked_at, expires_at)))
    WHERE revoked_at IS NOT NULL OR expires_at IS NOT NULL;

-- Domains -------------------------------------------------------------------------

-- A domain is deleted after its mail, so its row does not go with its tenant's.
CREATE TABLE domain (
    id             uuid PRIMARY KEY,
    name           text NOT NULL,
    -- null: a system domain; else a custom domain of that tenant.
    tenant         uuid REFERENCES tenant (id),
    -- Mail is accepted and readable; a custom domain serves while it is verified.
    serves         boolean NOT NULL,
    -- Addresses without a mailbox receive mail.
    shared_inboxes boolean NOT NULL DEFAULT true,
    is_default     boolean NOT NULL DEFAULT false,
    sort_order     integer NOT NULL DEFAULT 0,
    managed_by     text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    created_at     timestamptz NOT NULL,
    -- Its mail is being deleted; the row follows.
    removed_at     timestamptz,

    -- Verification of custom domains.
    -- false: its Kubernetes object is not accepted; the domain stays pending and is not checked.
    active         boolean NOT NULL DEFAULT true,
    verify_status  text NOT NULL DEFAULT 'verified' CHECK (verify_status IN ('pending', 'verified', 'failed')),
    -- Expected value of the TXT record; public, and the same when the tenant adds the domain again.
    verify_token   text,
    -- A pending domain fails then.
    deadline       timestamptz,
    verified_at    timestamptz,
    failure_reason text CHECK (failure_reason IN ('verification_timed_out', 'records_lost', 'claimed_by_another')),
    -- Consecutive daily checks that found a record missing or different.
    failed_checks  smallint NOT NULL DEFAULT 0,
    -- The TXT record was found when name servers last answered.
    txt_ok         boolean NOT NULL DEFAULT false,
    -- Result of the last check of the TXT record; unknown: no name server answered; null: never checked.
    txt_result     text CHECK (txt_result IN ('found', 'missing', 'mismatch', 'unknown')),
    -- What name servers have in place of the TXT record: bounded, sorted, distinct; empty unless it is a mismatch.
    txt_seen       text[] NOT NULL DEFAULT '{}' CHECK (cardinality(txt_seen) <= 5),
    -- The MX record was found when name servers last answered.
    mx_ok          boolean NOT NULL DEFAULT false,
    -- Result of the last check of the MX record; unknown: no name server answered; null: never checked.
    mx_result      text CHECK (mx_result IN ('found', 'missing', 'mismatch', 'unknown')),
    -- What name servers have in place of the MX record: bounded, sorted, distinct; empty unless it is a mismatch.
    mx_seen        text[] NOT NULL DEFAULT '{}' CHECK (cardinality(mx_seen) <= 5),
    -- When the next scheduled check is due; null: never.
    next_check_at  timestamptz,
    -- When its owner last requested a check: at most once in 10 s.
    check_requested_at timestamptz,
    -- End of the lease of the loop that checks it (server time, between live processes).
    claimed_until  timestamptz,

    CHECK (tenant IS NULL OR NOT is_default),
    CHECK (tenant IS NULL OR serves = (verify_status = 'verified' AND removed_at IS NULL)),
    CHECK ((verify_status = 'failed') = (failure_reason IS NOT NULL))
);
CREATE UNIQUE INDEX domain_serving ON domain (name) WHERE serves;
CREATE UNIQUE INDEX domain_default ON domain (is_default) WHERE is_default;
CREATE UNIQUE INDEX domain_of_tenant ON domain (tenant, name) WHERE tenant IS NOT NULL AND removed_at IS NULL;
CREATE INDEX domain_tenant ON domain (tenant) WHERE tenant IS NOT NULL;
CREATE INDEX domain_name ON domain (name) WHERE tenant IS NOT NULL AND removed_at IS NULL;
CREATE INDEX domain_due ON domain (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX domain_removed ON domain (removed_at) WHERE removed_at IS NOT NULL;

-- The key of verify tokens: made once, and never another one, since the TXT records of tenants depend on it.
CREATE TABLE verify_token_key (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    -- Name of the key of the installation that sealed it.
    kid       text NOT NULL,
    -- Sealed (AES-256-GCM-SIV) with that key.
    sealed    bytea NOT NULL
);

-- Mailboxes -----------------------------------------------------------------------

-- A held address outlives its tenant, so its row does not go with the tenant's.
CREATE TABLE mailbox (
    id             uuid PRIMARY KEY,
    domain         uuid NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
    local_part     text NOT NULL,
    -- null: a free mailbox, which only its own JWT can read.
    tenant         uuid REFERENCES tenant (id),
    quota          bigint NOT NULL CHECK (quota > 0),
    -- PHC string.
    password_hash  text NOT NULL,
    -- Part of every mailbox JWT; a password reset raises it and so revokes earlier ones. After a restore it is the time in
    -- seconds (`Store::renew_password_epochs`).
    password_epoch bigint NOT NULL DEFAULT 0,
    -- false: mail is received but sign-in is refused, because the password is not yet delivered or the Kubernetes
    -- object is not accepted.
    active         boolean NOT NULL DEFAULT true,
    managed_by     text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    created_at     timestamptz NOT NULL,
    -- Last sign-in or read; an idle free mailbox is removed.
    seen_at        timestamptz NOT NULL,
    removed_at     timestamptz,
    -- A removed mailbox keeps its address until then, so that no other owner receives its mail.
    held_until     timestamptz,
    CHECK ((removed_at IS NULL) = (held_until IS NULL))
);
CREATE UNIQUE INDEX mailbox_address ON mailbox (domain, local_part);
CREATE INDEX mailbox_tenant ON mailbox (tenant, created_at DESC) WHERE tenant IS NOT NULL AND removed_at IS NULL;
CREATE INDEX mailbox_removed_of_tenant ON mailbox (tenant) WHERE tenant IS NOT NULL AND removed_at IS NOT NULL;
CREATE INDEX mailbox_free_seen ON mailbox (seen_at) WHERE tenant IS NULL AND removed_at IS NULL;
CREATE INDEX mailbox_held ON mailbox (held_until) WHERE removed_at IS NOT NULL;

-- Webhooks --------------------------------------------------------------------------

CREATE TABLE webhook (
    id                uuid PRIMARY KEY,
    tenant            uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    url               text NOT NULL,
    events            text[] NOT NULL CHECK (cardinality(events) > 0),
    -- Sealed (AES-256-GCM-SIV) with a key of the installation, for this webhook alone.
    secret            bytea NOT NULL,
    -- How often the same secret was sealed again with another key: such a change is no rotation (sql/audit.sql).
    reseals           integer NOT NULL DEFAULT 0,
    -- disabled: it failed too often in a row and receives no more events.
    status            text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
    -- false: its secret is not yet delivered to its owner; events wait.
    active            boolean NOT NULL DEFAULT true,
    managed_by        text NOT NULL DEFAULT 'api' CHECK (managed_by IN ('api', 'kubernetes')),
    created_at        timestamptz NOT NULL,
    -- Failed attempts in a row.
    failure_count     integer NOT NULL DEFAULT 0 CHECK (failure_count >= 0),
    -- When the last failure that counts was recorded: attempts that began before it do not count.
    failed_at         timestamptz,
    last_triggered_at timestamptz,
    -- No attempt before; business time.
    due_at            timestamptz NOT NULL DEFAULT '-infinity',
    -- The process that delivers its events; only what that process records counts.
    lease_holder      uuid,
    -- Server time, between live processes.
    lease_expires_at  timestamptz
);
CREATE INDEX webhook_tenant ON webhook (tenant, created_at DESC);

-- One row per event and webhook, from the commit of its mail until it is delivered or dropped. Its
-- content is read from the message when it is sent. No foreign key: mail never waits for a change of a
-- webhook. Events of a deleted webhook are deleted later.
CREATE TABLE webhook_event (
    webhook  uuid NOT NULL,
    -- Position of the message in the stream: the order of delivery.
    seq      bigint NOT NULL,
    -- evt_… of every attempt.
    id       uuid NOT NULL,
    -- message.id, with class where it is stored.
    message  uuid NOT NULL,
    class    retention_class NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    PRIMARY KEY (webhook, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);

-- One row per attempt; its time is that of its id (UUIDv7). A partition a day (webhooks/delivery.sql), dropped
-- with the attempts of deleted webhooks when its week is over: so there is no foreign key.
CREATE TABLE webhook_delivery (
    webhook     uuid NOT NULL,
    id          uuid NOT NULL,
    event_type  text NOT NULL,
    event_id    text NOT NULL,
    -- 0: no response.
    status_code integer NOT NULL,
    error       text CHECK (error IN ('timeout', 'connection_refused', 'dns_failure', 'tls_failure',
                                      'blocked_address', 'http_status', 'connection_failed')),
    attempt     integer NOT NULL CHECK (attempt > 0),
    duration_ms integer NOT NULL CHECK (duration_ms >= 0),
    PRIMARY KEY (webhook, id)
) PARTITION BY RANGE (id);

-- Mail ------------------------------------------------------------------------

-- The position of the one stream. Every statement that adds mail changes its row first and holds it to the
-- commit, so the order of seq is the order of commits: `seq > cursor` never skips.
CREATE TABLE stream (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    seq       bigint NOT NULL,
    -- Tells this stream from others where several installations share a Redis.
    id        uuid NOT NULL DEFAULT gen_random_uuid()
) WITH (fillfactor = 10);
INSERT INTO stream (seq) VALUES (0);

-- One row per recipient: what lists show. owner_kind: 0 shared inbox, 1 mailbox, 2 custom domain,
-- 3 platform. The time of a message is that of its id (UUIDv7). Rows are narrow, since lists read many of
-- them: data is in `raw`. Read by: primary key (by id), inbox (lists, waits, WebSocket), tenant
-- (`/v1/me`, `/v1/domain`), domain (purge of a custom domain), seq (messages that no hint announced).
CREATE TABLE message (
    id               uuid NOT NULL,
    -- The mailbox, or the key of the exact address where there is none (first 16 octets of its SHA-256).
    inbox            uuid NOT NULL,
    -- Mailbox, custom domain, platform tenant, or nil for a shared inbox; decided when stored, never changed.
    owner            uuid NOT NULL,
    -- raw.mail; recipients of one mail and class share it.
    mail             uuid NOT NULL,
    -- Tenant of the mailbox or custom domain, or platform, when stored; null for free mailboxes and shared
    -- inboxes.
    tenant           uuid,
    seq              bigint NOT NULL,
    -- Octets that /raw returns to this recipient.
    size             integer NOT NULL,
    -- Retention in hours.
    class            smallint NOT NULL,
    owner_kind       smallint NOT NULL,
    -- The mail had one recipient, so its trace may name it.
    single_recipient boolean NOT NULL,
    is_read          boolean NOT NULL DEFAULT false,
    address          text NOT NULL,
    sender           text NOT NULL,
    from_text        text NOT NULL,
    from_email       text NOT NULL,
    subject          text NOT NULL,
    preview          text NOT NULL,
    PRIMARY KEY (class, id)
) PARTITION BY RANGE (class, id);
CREATE INDEX message_inbox ON message (inbox, seq);
CREATE INDEX message_tenant ON message (tenant, seq) WHERE tenant IS NOT NULL;
CREATE INDEX message_domain ON message (owner, seq) WHERE owner_kind = 2;
CREATE INDEX message_seq ON message USING brin (seq) WITH (pages_per_range = 32, autosummarize = on);

-- Once per mail and retention class: trace field and data, zstd. Data of more than one part is stored before
-- the messages, a part at a time, so that no mail waits for it under the stream's lock.
CREATE TABLE raw (
    mail              uuid NOT NULL,
    class             smallint NOT NULL,
    -- From 0; what is said of the mail is in part 0, and zero in the others.
    part              smallint NOT NULL,
    -- Messages that refer to it; the last one deletes it; 0: its mail is not accepted yet.
    recipients        integer NOT NULL,
    -- Offset in the uncompressed data where the `for` clause goes.
    for_clause_offset integer NOT NULL,
    -- Bytes of all parts.
    stored_bytes      integer NOT NULL,
    data              bytea NOT NULL,
    PRIMARY KEY (class, mail, part)
) PARTITION BY RANGE (class, mail);
ALTER TABLE raw ALTER COLUMN data SET STORAGE EXTERNAL;

-- Attached partitions of `message` and `raw`, a pair per retention class and time range, with the bytes of
-- their messages.
CREATE TABLE message_partition (
    class        smallint NOT NULL,
    starts       timestamptz NOT NULL,
    ends         timestamptz NOT NULL,
    -- Bytes of all of its messages.
    bytes        bigint NOT NULL DEFAULT 0,
    -- Bytes of those in shared inboxes.
    shared_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (class, starts)
) WITH (fillfactor = 10);

-- Octets by scope and partition, deleted with the partition, so expiry updates nothing. A scope is a mailbox,
-- the key of an address of a custom domain or of the platform, or a tenant. A shared inbox has no row: it
-- would cost every mail a random write; ingest bounds those itself.
CREATE TABLE usage (
    scope          uuid NOT NULL,
    class          smallint NOT NULL,
    -- message_partition.starts.
    starts         timestamptz NOT NULL,
    bytes          bigint NOT NULL,
    -- Messages with lower ids have expired, and are not in bytes any more.
    expired_before uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    PRIMARY KEY (scope, class, starts)
) WITH (fillfactor = 70);

-- Deletions by an owner that the worker still carries out: hidden at once.
CREATE TABLE purge (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    -- An inbox, or the owner itself for everything it has.
    inbox      uuid NOT NULL,
    owner      uuid NOT NULL,
    -- Only messages to this exact address; empty: all of the inbox.
    address    text NOT NULL,
    up_to_seq  bigint NOT NULL,
    -- The owner is removed; else its inbox was cleared, and usage is lowered already.
    owner_removed boolean NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (inbox, owner, address, up_to_seq, owner_removed)
);

-- Changes of rights -------------------------------------------------------------------

-- A process that relies on the rights of a subject checks them again when a row names it. A reader keeps
-- the snapshot of its last poll and sees each row exactly once: those visible in its current snapshot and
-- not in the previous one. So the feed needs no counter, and no lock that a change of rights waits for. The
-- worker deletes rows that are older than some minutes.
CREATE TABLE change (
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- Tenant, api_token, mailbox, domain or webhook, or the key of an address that became a mailbox.
    subject    uuid NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now() /* lease */
);
CREATE INDEX change_xid ON change (xid);
CREATE INDEX change_changed_at ON change USING brin (changed_at);

-- Kubernetes objects --------------------------------------------------------------------

-- An operator raises the epoch when it becomes the leader; writes of earlier leaders are refused.
CREATE TABLE operator (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    epoch     bigint NOT NULL
);
INSERT INTO operator (epoch) VALUES (0);

-- The Kubernetes objects that an operator has seen and not yet released.
CREATE TABLE resource (
    -- metadata.uid: an object that is created again under the same name has another one.
    uid              uuid PRIMARY KEY,
    -- metadata.uid of the namespace kube-system: several clusters may share a database.
    cluster          uuid NOT NULL,
    kind             text NOT NULL
        CHECK (kind IN ('Tenant', 'SystemDomain', 'CustomDomain', 'Webhook', 'ApiToken', 'Mailbox')),
    namespace        text,
    name             text NOT NULL,
    -- The row that the object manages: id of a tenant, domain, webhook, api_token or mailbox.
    row_id           uuid UNIQUE,
    -- The tenant that this row belonged to last; null for kinds without one. A Tenant that replaces its Tenant is another
    -- tenant, from which the object gets nothing.
    tenant           uuid,
    -- Last known deletion policy of the object: the row stays when the object is deleted.
    retained         boolean NOT NULL,
    -- Value of the annotation that requested a DNS check, handled last.
    verify_handled   text,
    -- Value of the annotation that requested a new secret, handled last.
    rotate_handled   text,
    -- Value of the annotation that requested re-enabling a webhook, handled last.
    reenable_handled text,
    -- The object no longer exists, and its row is not released yet.
    missing_since    timestamptz
);
CREATE INDEX resource_name ON resource (cluster, kind, name);
