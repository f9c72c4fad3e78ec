-- Final delivery for programs of the version before, which do not know what one tenant may store.

CREATE OR REPLACE FUNCTION accept_mail(
    p_free_class smallint, p_inbox_bytes bigint, p_now timestamptz,
    p_mail uuid[], p_accepted_at timestamptz[], p_raw bytea[], p_for_clause_offset integer[], p_sender text[],
    p_from_text text[], p_from_email text[], p_subject text[], p_preview text[], p_single_recipient boolean[],
    p_rcpt_of integer[], p_rcpt_id uuid[], p_rcpt_address text[], p_rcpt_local_part text[],
    p_rcpt_domain text[], p_rcpt_key uuid[], p_rcpt_reserved smallint[], p_rcpt_size integer[],
    OUT o_result smallint[], OUT o_seq bigint[], OUT o_class smallint[], OUT o_tenant uuid[],
    OUT o_owner uuid[], OUT o_inbox uuid[]
) LANGUAGE plpgsql AS $$
DECLARE
    -- Data that was stored before says how long it is.
    v_raw_bytes CONSTANT integer[] := ARRAY(
        SELECT coalesce(octet_length(m.data),
                        (SELECT r.stored_bytes FROM raw r
                          WHERE r.class IN (1, 6, 24, 72, 168, 720) AND r.mail = m.mail AND r.part = 0 LIMIT 1), 0)
          FROM unnest(p_mail, p_raw) WITH ORDINALITY AS m (mail, data, ord) ORDER BY m.ord);
BEGIN
    SELECT a.o_result, a.o_seq, a.o_class, a.o_tenant, a.o_owner, a.o_inbox
      INTO o_result, o_seq, o_class, o_tenant, o_owner, o_inbox
      FROM accept_mail(
               p_free_class, p_inbox_bytes, 9223372036854775807, p_now, p_mail, p_accepted_at, p_raw, v_raw_bytes,
               p_for_clause_offset, p_sender, p_from_text, p_from_email, p_subject, p_preview, p_single_recipient,
               p_rcpt_of, p_rcpt_id, p_rcpt_address, p_rcpt_local_part, p_rcpt_domain, p_rcpt_key, p_rcpt_reserved,
               p_rcpt_size) a;
END $$;
