-- The key of an address: the first 16 octets of its SHA-256. The counterpart in Rust is `RecipientAddress::inbox_key`.
CREATE OR REPLACE FUNCTION address_key(p_address text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(substring(sha256(convert_to(p_address, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid
$$;

-- Owner of the mail to an address now; no row where its domain is not served. p_local_part is the part before
-- the first `+`. p_reserved: 0 an ordinary local part, 1 reserved on system domains, 2 kept for the tenant
-- `platform` there, 3 cannot exist there, 4 the process is a sink, which serves every domain. Delivery, RCPT and every read
-- by address use this one function. The counterpart in Rust is `mail-ingest/src/recipient/acceptance.rs`, which names the
-- SMTP reply for each case.
--
-- A mailbox, live or with its address on hold, comes before the custom domain, that before the sink's tenant, that before
-- `platform`, and that before a shared inbox. What the sink's tenant owns is on no system domain. `receives`: mail is
-- accepted. Inlined where it is called.
CREATE OR REPLACE FUNCTION address_owner(
    p_domain text, p_local_part text, p_reserved smallint, p_now timestamptz
) RETURNS TABLE (
    domain uuid, is_system boolean, shared_inboxes boolean, mailbox uuid, on_hold boolean, quota bigint,
    tenant uuid, suspended boolean, retention_hours smallint, classes smallint[], owner_kind smallint,
    owner uuid, receives boolean
) LANGUAGE sql STABLE AS $$
    SELECT coalesce(d.id, '00000000-0000-0000-0000-000000000000'), d.tenant IS NULL AND k.owner_kind <> 4,
           d.shared_inboxes IS TRUE, b.id, b.removed_at IS NOT NULL, b.quota,
           t.id, coalesce(t.suspended, false), t.retention_hours, t.classes, k.owner_kind,
           CASE k.owner_kind WHEN 1 THEN b.id WHEN 2 THEN d.id WHEN 0 THEN '00000000-0000-0000-0000-000000000000'
                ELSE t.id END,
           b.removed_at IS NULL AND t.suspended IS NOT TRUE
               AND (d.tenant IS NOT NULL OR p_reserved <> 3)
               AND (k.owner_kind <> 0 OR (p_reserved = 0 AND d.shared_inboxes))
      FROM (SELECT) AS one
      LEFT JOIN domain d ON d.name = p_domain AND d.serves
      LEFT JOIN mailbox b ON b.domain = d.id AND b.local_part = p_local_part
                         AND (b.removed_at IS NULL OR b.held_until > p_now)
      LEFT JOIN tenant s ON p_reserved = 4 AND s.is_sink
     CROSS JOIN LATERAL (SELECT (CASE WHEN b.id IS NOT NULL THEN 1 WHEN d.tenant IS NOT NULL THEN 2
                                      WHEN s.id IS NOT NULL THEN 4 WHEN p_reserved = 2 THEN 3
                                      ELSE 0 END)::smallint AS owner_kind) k
      LEFT JOIN tenant t ON t.id = coalesce(d.tenant, b.tenant,
                                CASE k.owner_kind WHEN 3 THEN '00000000-0000-7000-8000-000000000001'::uuid
                                                  WHEN 4 THEN s.id END)
     WHERE d.id IS NOT NULL OR s.id IS NOT NULL
$$;
