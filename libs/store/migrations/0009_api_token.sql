-- Pro sessions that began before are refused: the database was restored then.
ALTER TABLE api_token ADD COLUMN sessions_from timestamptz;
