-- A message in a group (grp is its row; 0: the chat of a phone with the channel) has a row for each member. from_phone is 2
-- where another member wrote it, whose number is author.
ALTER TABLE messages ADD COLUMN grp INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN author TEXT NOT NULL DEFAULT '';

-- 1: the channel left it.
ALTER TABLE groups ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
