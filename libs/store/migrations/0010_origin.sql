-- The Kubernetes objects of namespaces that gave access to rows: what a namespace was granted ends with the grant. A row
-- here outlives the object's row in `resource`, since what a deleted object leaves to its tenant was granted, too.
CREATE TABLE origin (
    -- metadata.uid of the object.
    uid           uuid PRIMARY KEY,
    -- metadata.uid of the namespace kube-system.
    cluster       uuid NOT NULL,
    namespace     text NOT NULL,
    -- metadata.uid of the namespace: one that is created again under its name is another. null: an operator of the
    -- version before recorded the object.
    namespace_uid uuid
);
CREATE INDEX origin_namespace ON origin (cluster, namespace);
INSERT INTO origin (uid, cluster, namespace) SELECT uid, cluster, namespace FROM resource WHERE namespace IS NOT NULL;

-- origin.uid: the object that declares the row, or the ApiToken whose token made it over HTTP or set its password; null:
-- no namespace gave access to it.
ALTER TABLE api_token ADD COLUMN origin uuid;
ALTER TABLE domain ADD COLUMN origin uuid;
ALTER TABLE mailbox ADD COLUMN origin uuid;
ALTER TABLE webhook ADD COLUMN origin uuid;
CREATE INDEX api_token_origin ON api_token (origin) WHERE origin IS NOT NULL;
CREATE INDEX domain_origin ON domain (origin) WHERE origin IS NOT NULL;
CREATE INDEX mailbox_origin ON mailbox (origin) WHERE origin IS NOT NULL;
CREATE INDEX webhook_origin ON webhook (origin) WHERE origin IS NOT NULL;

UPDATE api_token k SET origin = r.uid FROM resource r WHERE r.row_id = k.id AND r.kind = 'ApiToken';
UPDATE domain d SET origin = r.uid FROM resource r WHERE r.row_id = d.id AND r.kind = 'CustomDomain';
UPDATE mailbox b SET origin = r.uid FROM resource r WHERE r.row_id = b.id AND r.kind = 'Mailbox';
UPDATE webhook w SET origin = r.uid FROM resource r WHERE r.row_id = w.id AND r.kind = 'Webhook';
-- Tokens say which token created them; of what else was made over HTTP before, nothing says it.
WITH RECURSIVE made (id, origin) AS (
    SELECT k.id, k.origin FROM api_token k WHERE k.origin IS NOT NULL
    UNION
    SELECT k.id, m.origin FROM api_token k JOIN made m ON k.created_by = m.id::text WHERE k.origin IS NULL
)
UPDATE api_token k SET origin = m.origin FROM made m WHERE k.id = m.id AND k.origin IS NULL;
