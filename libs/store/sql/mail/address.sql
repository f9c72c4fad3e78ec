-- The key of an address: the first 16 octets of its SHA-256. The counterpart in Rust is `RecipientAddress::inbox_key`.
CREATE OR REPLACE FUNCTION address_key(p_address text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(substring(sha256(convert_to(p_address, 'UTF8')) FROM 1 FOR 16), 'hex')::uuid
$$;

-- The owner of an address. Delivery, RCPT and every read by address use this one function. The counterpart in Rust is `mail-ingest/src/recipient/judge.rs`, which names the SMTP reply for each case.

-- Owner of the mail to an address now; no row where its domain is not served. p_local_part is the part before
-- the first `+`. p_reserved: 0 an ordinary local part, 1 reserved on system domains, 2 kept for the tenant
-- `platform` there, 3 cannot exist there, 4 the process is a sink (`inbox_owner`).
--
-- A mailbox, live or with its address on hold, comes before the custom domain, that before `platform`, and
-- that before a shared inbox. `receives`: mail is accepted. Inlined where it is called.
CREATE OR REPLACE FUNCTION address_owner(
    p_domain text, p_local_part text, p_reserved smallint, p_now timestamptz
) RETURNS TABLE (
    domain uuid, is_system boolean, shared_inboxes boolean, mailbox uuid, on_hold boolean, quota bigint,
    tenant uuid, suspended boolean, retention_hours smallint, classes smallint[], owner_kind smallint,
    owner uuid, receives boolean
) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.tenant IS NULL, d.shared_inboxes, b.id, b.removed_at IS NOT NULL, b.quota,
           t.id, coalesce(t.suspended, false), t.retention_hours, t.classes, k.owner_kind,
           CASE k.owner_kind WHEN 1 THEN b.id WHEN 2 THEN d.id WHEN 3 THEN t.id
                ELSE '00000000-0000-0000-0000-000000000000' END,
           b.removed_at IS NULL AND t.suspended IS NOT TRUE
               AND (d.tenant IS NOT NULL OR p_reserved <> 3)
               AND (k.owner_kind <> 0 OR (p_reserved = 0 AND d.shared_inboxes))
      FROM domain d
      LEFT JOIN mailbox b ON b.domain = d.id AND b.local_part = p_local_part
                         AND (b.removed_at IS NULL OR b.held_until > p_now)
     CROSS JOIN LATERAL (SELECT (CASE WHEN b.id IS NOT NULL THEN 1 WHEN d.tenant IS NOT NULL THEN 2
                                      WHEN p_reserved = 2 THEN 3 ELSE 0 END)::smallint AS owner_kind) k
      LEFT JOIN tenant t ON t.id = coalesce(d.tenant, b.tenant,
                                CASE k.owner_kind WHEN 3 THEN '00000000-0000-7000-8000-000000000001'::uuid END)
     WHERE d.name = p_domain AND d.serves
$$;

-- The same for a process that may be a sink (p_reserved 4): there the sink's tenant owns the mail to every address that
-- neither a mailbox nor a custom domain has, on domains that are not served, too.
CREATE OR REPLACE FUNCTION inbox_owner(
    p_domain text, p_local_part text, p_reserved smallint, p_now timestamptz
) RETURNS TABLE (
    domain uuid, is_system boolean, shared_inboxes boolean, mailbox uuid, on_hold boolean, quota bigint,
    tenant uuid, suspended boolean, retention_hours smallint, classes smallint[], owner_kind smallint,
    owner uuid, receives boolean
) LANGUAGE sql STABLE AS $$
    SELECT o.* FROM address_owner(p_domain, p_local_part, p_reserved, p_now) o
     WHERE p_reserved <> 4 OR o.owner_kind IN (1, 2)
    UNION ALL
    SELECT '00000000-0000-0000-0000-000000000000', false, false, NULL, false, NULL, t.id, t.suspended,
           t.retention_hours, t.classes, 4::smallint, t.id, NOT t.suspended
      FROM tenant t
     WHERE p_reserved = 4 AND t.is_sink
       AND NOT EXISTS (SELECT FROM address_owner(p_domain, p_local_part, p_reserved, p_now) o
                        WHERE o.owner_kind IN (1, 2))
$$;
