-- Real time: what a tenant owns as one sequence of mail, and a feed of changes that end or move
-- rights, so that whoever waits on any process looks again.

-- Mail of a tenant -------------------------------------------------------------

ALTER TABLE message ADD COLUMN tenant uuid;
COMMENT ON COLUMN message.tenant IS 'tenant of the mailbox or custom domain, or platform, when stored; null for free mailboxes and shared inboxes';
UPDATE message m SET tenant = b.tenant FROM mailbox b WHERE m.owner_kind = 1 AND b.id = m.owner AND b.tenant IS NOT NULL;
UPDATE message m SET tenant = d.tenant FROM domain d WHERE m.owner_kind = 2 AND d.id = m.owner;
UPDATE message m SET tenant = m.owner WHERE m.owner_kind = 3;
CREATE INDEX message_tenant ON message (tenant, seq) WHERE tenant IS NOT NULL;

-- The unexpired messages of a tenant in one class after a position, oldest first: of its mailboxes,
-- and of every address under its custom domains while they serve. Whether an owner serves is looked up
-- for each message that is met: EXISTS would make a table of all that do.
CREATE FUNCTION tenant_after(
    p_class smallint, p_now timestamptz, p_tenant uuid, p_seq bigint, p_limit bigint
) RETURNS SETOF message LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE
    v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    RETURN QUERY
    SELECT m.* FROM message m
    WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq > p_seq
      AND CASE m.owner_kind
              WHEN 1 THEN (SELECT b.removed_at IS NULL AND b.tenant = p_tenant AND d.serves
                           FROM mailbox b JOIN domain d ON d.id = b.domain WHERE b.id = m.owner)
              WHEN 2 THEN (SELECT d.serves FROM domain d WHERE d.id = m.owner)
              ELSE true END
      AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                      AND (p.address IS NULL OR p.address = m.address) AND m.seq <= p.up_to_seq)
    ORDER BY m.seq LIMIT p_limit;
END $$;

-- The same before a position, newest first.
CREATE FUNCTION tenant_before(
    p_class smallint, p_now timestamptz, p_tenant uuid, p_seq bigint, p_limit bigint
) RETURNS SETOF message LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE
    v_oldest CONSTANT uuid := time_id(p_now - make_interval(hours => p_class));
BEGIN
    RETURN QUERY
    SELECT m.* FROM message m
    WHERE m.class = p_class AND m.id >= v_oldest AND m.tenant = p_tenant AND m.seq < p_seq
      AND CASE m.owner_kind
              WHEN 1 THEN (SELECT b.removed_at IS NULL AND b.tenant = p_tenant AND d.serves
                           FROM mailbox b JOIN domain d ON d.id = b.domain WHERE b.id = m.owner)
              WHEN 2 THEN (SELECT d.serves FROM domain d WHERE d.id = m.owner)
              ELSE true END
      AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox IN (m.inbox, m.owner) AND p.owner = m.owner
                      AND (p.address IS NULL OR p.address = m.address) AND m.seq <= p.up_to_seq)
    ORDER BY m.seq DESC LIMIT p_limit;
END $$;

-- The installation ---------------------------------------------------------------

-- Tells this database's stream from every other, where several installations share a Redis.
ALTER TABLE stream ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();

-- Changes of rights ------------------------------------------------------------

-- Whoever rests on a subject looks again at what it may do when a row names it. A reader keeps the
-- snapshot of its last look, and meets each row exactly once: those that its present snapshot
-- shows and the former one did not. So the feed needs no counter, and no lock that a change of
-- rights could wait for.
CREATE TABLE change (
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    subject    uuid NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now() /* lease */
);
CREATE INDEX change_xid ON change (xid);
CREATE INDEX change_changed_at ON change USING brin (changed_at);
COMMENT ON TABLE change IS 'what changed in the last minutes: the worker forgets older rows';
COMMENT ON COLUMN change.subject IS 'tenant, api_token, mailbox, domain, or the key of an address that became a mailbox';

CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO change (subject) VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END);
    RETURN NULL;
END $$;

CREATE FUNCTION note_new_mailbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO change (subject)
    SELECT encode(substring(sha256(convert_to(NEW.local_part || '@' || d.name, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid
      FROM domain d WHERE d.id = NEW.domain;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION note_new_mailbox IS 'the subject is the key of its address, by which waits on the shared inbox go';

CREATE TRIGGER tenant_changed AFTER UPDATE OF suspended, removed_at ON tenant
    FOR EACH ROW WHEN ((OLD.suspended, OLD.removed_at) IS DISTINCT FROM (NEW.suspended, NEW.removed_at))
    EXECUTE FUNCTION note_change();
CREATE TRIGGER tenant_gone AFTER DELETE ON tenant FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER token_changed AFTER UPDATE OF revoked_at, expires_at ON api_token
    FOR EACH ROW WHEN ((OLD.revoked_at, OLD.expires_at) IS DISTINCT FROM (NEW.revoked_at, NEW.expires_at))
    EXECUTE FUNCTION note_change();
CREATE TRIGGER token_gone AFTER DELETE ON api_token FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER mailbox_made AFTER INSERT ON mailbox FOR EACH ROW EXECUTE FUNCTION note_new_mailbox();
CREATE TRIGGER mailbox_changed AFTER UPDATE OF removed_at, password_epoch, tenant ON mailbox
    FOR EACH ROW WHEN ((OLD.removed_at, OLD.password_epoch, OLD.tenant)
                       IS DISTINCT FROM (NEW.removed_at, NEW.password_epoch, NEW.tenant))
    EXECUTE FUNCTION note_change();
CREATE TRIGGER mailbox_gone AFTER DELETE ON mailbox FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TRIGGER domain_changed AFTER UPDATE OF serves, shared_inboxes, removed_at ON domain
    FOR EACH ROW WHEN ((OLD.serves, OLD.shared_inboxes, OLD.removed_at)
                       IS DISTINCT FROM (NEW.serves, NEW.shared_inboxes, NEW.removed_at))
    EXECUTE FUNCTION note_change();
CREATE TRIGGER domain_gone AFTER DELETE ON domain FOR EACH ROW EXECUTE FUNCTION note_change();

-- Final delivery ---------------------------------------------------------------

-- As before; it also stores whose tenant's the mail is, and tells what its readers are found by.
DROP FUNCTION accept_mail;
CREATE FUNCTION accept_mail(
    p_free_class smallint, p_inbox_bytes bigint, p_now timestamptz,
    p_mail uuid[], p_raw bytea[], p_for_at integer[], p_sender text[], p_from_text text[],
    p_from_email text[], p_subject text[], p_preview text[], p_sole boolean[],
    p_rcpt_of integer[], p_rcpt_id uuid[], p_rcpt_address text[], p_rcpt_base text[],
    p_rcpt_domain text[], p_rcpt_key uuid[], p_rcpt_reserved smallint[], p_rcpt_size integer[],
    OUT o_verdict smallint[], OUT o_seq bigint[], OUT o_class smallint[], OUT o_tenant uuid[],
    OUT o_owner uuid[], OUT o_inbox uuid[]
) LANGUAGE plpgsql
-- The plans that fit any number of rows, planned once a connection.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    c_shared CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    c_whole  CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    v_seq    bigint;
    v_kind   smallint[];
    v_refused integer[];
BEGIN
    -- First the stream: what follows sees all that was committed before it.
    SELECT s.seq INTO STRICT v_seq FROM stream s FOR UPDATE;

    -- Whose it is, in the order of the recipients.
    SELECT array_agg(x.verdict), array_agg(x.kind), array_agg(x.owner), array_agg(x.inbox),
           array_agg(x.class), array_agg(x.tenant)
      INTO o_verdict, v_kind, o_owner, o_inbox, o_class, o_tenant
      FROM (SELECT (CASE WHEN d.id IS NOT NULL
                              AND m.removed_at IS NULL
                              AND t.suspended IS NOT TRUE
                              AND (k.kind <> 0 OR (r.reserved = 0 AND d.shared_inboxes)) THEN 0
                         ELSE 1 END)::smallint AS verdict,
                   k.kind,
                   CASE k.kind WHEN 0 THEN c_shared WHEN 1 THEN m.id WHEN 2 THEN d.id ELSE t.id END AS owner,
                   coalesce(m.id, r.key) AS inbox,
                   coalesce(t.retention_hours, p_free_class) AS class,
                   t.id AS tenant
              FROM unnest(p_rcpt_base, p_rcpt_domain, p_rcpt_key, p_rcpt_reserved) WITH ORDINALITY
                       AS r (base, domain, key, reserved, ord)
              LEFT JOIN domain d ON d.name = r.domain AND d.serves
              LEFT JOIN mailbox m ON m.domain = d.id AND m.local_part = r.base
                                 AND (m.removed_at IS NULL OR m.held_until > p_now)
              CROSS JOIN LATERAL (SELECT (CASE WHEN m.id IS NOT NULL THEN 1 WHEN d.tenant IS NOT NULL THEN 2
                                               WHEN r.reserved = 2 THEN 3 ELSE 0 END)::smallint AS kind) k
              LEFT JOIN tenant t ON t.id = coalesce(d.tenant, m.tenant, CASE k.kind
                                               WHEN 3 THEN '00000000-0000-7000-8000-000000000001'::uuid END)
             ORDER BY r.ord) x;

    -- Whether there is room: mailboxes, addresses under custom domains, tenants. Shared
    -- inboxes have no rows of their own here.
    IF EXISTS (SELECT FROM unnest(v_kind) AS kind WHERE kind <> 0) THEN
        SELECT array_agg(CASE
                   WHEN r.verdict <> 0 OR r.kind = 0 THEN r.verdict
                   WHEN r.kind = 1 AND scope_used(r.inbox, p_now) + r.inbox_need > b.quota
                                   AND mailbox_used(r.inbox, p_now) + r.inbox_need > b.quota THEN 2
                   WHEN r.kind <> 1 AND scope_used(r.inbox, p_now) + r.inbox_need > p_inbox_bytes THEN 2
                   WHEN scope_used(t.id, p_now) + r.tenant_need > t.mailbox_bytes * t.mailbox_limit THEN 2
                   ELSE 0 END::smallint ORDER BY r.ord)
          INTO o_verdict
          FROM (SELECT *, sum(u.size) OVER (PARTITION BY u.inbox) AS inbox_need,
                          sum(u.size) OVER (PARTITION BY u.tenant) AS tenant_need
                  FROM unnest(o_verdict, v_kind, o_inbox, o_tenant, p_rcpt_size) WITH ORDINALITY
                           AS u (verdict, kind, inbox, tenant, size, ord)) r
          LEFT JOIN mailbox b ON r.kind = 1 AND b.id = r.inbox
          LEFT JOIN tenant t ON t.id = r.tenant;
    END IF;

    -- All recipients of a mail or none; what is stored is numbered.
    SELECT array_agg(DISTINCT u.of) INTO v_refused
      FROM unnest(o_verdict, p_rcpt_of) AS u (verdict, of) WHERE u.verdict <> 0;
    IF v_refused IS NULL THEN
        o_seq := ARRAY(SELECT v_seq + ord FROM generate_series(1, cardinality(p_rcpt_of)) AS ord);
    ELSE
        SELECT array_agg(CASE WHEN stored THEN v_seq + place END ORDER BY ord),
               array_agg(CASE WHEN verdict = 0 AND NOT stored THEN 2::smallint ELSE verdict END ORDER BY ord)
          INTO o_seq, o_verdict
          FROM (SELECT u.*, u.of <> ALL (v_refused) AS stored,
                       count(*) FILTER (WHERE u.of <> ALL (v_refused)) OVER (ORDER BY u.ord) AS place
                  FROM unnest(o_verdict, p_rcpt_of) WITH ORDINALITY AS u (verdict, of, ord)) x;
    END IF;

    INSERT INTO raw (mail, class, recipients, for_at, data)
    SELECT p_mail[s.of], s.class, count(*), p_for_at[s.of], p_raw[s.of]
      FROM unnest(p_rcpt_of, o_class, o_seq) AS s (of, class, seq)
     WHERE s.seq IS NOT NULL
     GROUP BY s.of, s.class;

    INSERT INTO message (id, inbox, owner, mail, seq, size, class, owner_kind, sole, tenant,
                         address, sender, from_text, from_email, subject, preview)
    SELECT s.id, s.inbox, s.owner, p_mail[s.of], s.seq, s.size, s.class, s.kind,
           p_sole[s.of], s.tenant, s.address, p_sender[s.of], p_from_text[s.of], p_from_email[s.of],
           p_subject[s.of], p_preview[s.of]
      FROM unnest(p_rcpt_id, o_inbox, o_owner, p_rcpt_of, o_seq, p_rcpt_size, o_class, v_kind, o_tenant,
                  p_rcpt_address) AS s (id, inbox, owner, of, seq, size, class, kind, tenant, address)
     WHERE s.seq IS NOT NULL;

    INSERT INTO usage AS u (scope, class, slot, bytes)
    SELECT x.scope, s.class, slot_start(s.class, id_time(s.id)) AS slot, sum(s.size)
      FROM unnest(p_rcpt_id, o_class, o_seq, p_rcpt_size, v_kind, o_inbox, o_tenant)
               AS s (id, class, seq, size, kind, inbox, tenant)
      CROSS JOIN LATERAL (VALUES (c_whole), (CASE s.kind WHEN 0 THEN c_shared ELSE s.inbox END), (s.tenant)) AS x (scope)
     WHERE s.seq IS NOT NULL AND x.scope IS NOT NULL
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (scope, class, slot) DO UPDATE SET bytes = u.bytes + excluded.bytes;

    v_seq := (SELECT max(seq) FROM unnest(o_seq) AS seq);
    IF v_seq IS NOT NULL THEN
        UPDATE stream SET seq = v_seq;
    END IF;
END $$;
