-- 1: links to files in the events of the webhook are signed, and need no token.
ALTER TABLE webhook ADD COLUMN signed_media BIGINT NOT NULL DEFAULT 0;
