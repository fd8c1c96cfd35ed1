-- Whether the channel blocks the phone.
ALTER TABLE phones ADD COLUMN blocked BIGINT NOT NULL DEFAULT 0;
