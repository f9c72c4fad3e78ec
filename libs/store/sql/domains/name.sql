-- The names of system and custom domains. Each change that takes a lock on which others wait is one function, so that its
-- caller needs one statement and no lock outlives a dead process. Locks are taken in
-- this order: tenant, names of domains (advisory), domains and mailboxes by id, the count of free mailboxes, stream. All
-- mail waits for the stream's row, so nothing but what takes a moment comes after it.

-- Whether one name is equal to, above or below the other.
CREATE OR REPLACE FUNCTION domains_overlap(a text, b text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT a = b OR right(a, length(b) + 1) = '.' || b OR right(b, length(a) + 1) = '.' || a
$$;

-- Locks the names of all domains to the end of the transaction: from the check whether names overlap until
-- the domain is a system domain, pending or serving.
CREATE OR REPLACE FUNCTION lock_domain_names() RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(hashtext('tempmail.domain_names'))
$$;

-- Whether a name is equal to, above or below a system domain or a name of the installation itself.
CREATE OR REPLACE FUNCTION overlaps_system_domain(p_name text, p_installation_names text[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM domain d WHERE d.tenant IS NULL AND d.serves AND domains_overlap(d.name, p_name))
        OR EXISTS (SELECT FROM unnest(p_installation_names) AS own (name) WHERE domains_overlap(own.name, p_name))
$$;

-- Waits until the mail in flight is stored, and holds back the next to the end of the transaction: that finds what this
-- one removed. Returns the position up to which mail is stored. To be called last.
CREATE OR REPLACE FUNCTION wait_for_mail() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT s.seq FROM stream s FOR UPDATE
$$;

-- Removes the mailboxes of a custom domain: hidden at once, their mail deleted by the worker. The caller calls
-- wait_for_mail.
CREATE OR REPLACE FUNCTION remove_mailboxes_of_domain(p_domain uuid, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM mailbox b WHERE b.domain = p_domain ORDER BY b.id FOR NO KEY UPDATE;
    PERFORM purge_removed(b.id, p_now) FROM mailbox b WHERE b.domain = p_domain AND b.removed_at IS NULL;
    UPDATE mailbox b
       SET removed_at = coalesce(b.removed_at, p_now), held_until = p_now, local_part = '@' || b.id,
           password_epoch = b.password_epoch + (b.removed_at IS NULL)::integer
     WHERE b.domain = p_domain;
END $$;
