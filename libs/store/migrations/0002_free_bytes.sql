-- Octets of mail without a tenant, which has a part of the installation's storage (`limits.shared_bytes`).
ALTER TABLE message_partition ADD COLUMN free_bytes bigint NOT NULL DEFAULT 0;
