-- After how many seconds messages disappear; 0: they stay. Of a phone: in its chat with the channel.
ALTER TABLE phones ADD COLUMN timer BIGINT NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN timer BIGINT NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN timer BIGINT NOT NULL DEFAULT 0;
