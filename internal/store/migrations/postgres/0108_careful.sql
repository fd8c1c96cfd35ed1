-- When the account was first seen on the channel; 0: long ago.
ALTER TABLE channel ADD COLUMN paired_at BIGINT NOT NULL DEFAULT 0;
-- What left the channel on a day, while it was careful: messages, and those to new contacts.
ALTER TABLE channel ADD COLUMN use_day TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE channel ADD COLUMN use_messages BIGINT NOT NULL DEFAULT 0;
ALTER TABLE channel ADD COLUMN use_firsts BIGINT NOT NULL DEFAULT 0;
UPDATE channel SET paired_at = created_at WHERE number <> '';
