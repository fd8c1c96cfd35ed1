-- A message in a group (grp is its row; 0: the chat of a phone with the channel) has a row for each member. from_phone is 2
-- where another member wrote it, whose number is author.
ALTER TABLE messages ADD COLUMN grp BIGINT NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN author TEXT COLLATE "C" NOT NULL DEFAULT '';

-- 1: the channel left it.
ALTER TABLE groups ADD COLUMN gone BIGINT NOT NULL DEFAULT 0;

UPDATE schema_serves SET version = 5;
