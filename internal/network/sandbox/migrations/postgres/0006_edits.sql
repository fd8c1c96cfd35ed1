-- When the text of a message was last changed, in milliseconds; 0: never.
ALTER TABLE messages ADD COLUMN edited_at BIGINT NOT NULL DEFAULT 0;

UPDATE schema_serves SET version = 6;
