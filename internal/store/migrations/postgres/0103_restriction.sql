-- Whether the network lets a channel write to new contacts: 0 it does, 1 it does not for an unknown time, else until when.
ALTER TABLE channel ADD COLUMN restricted_until BIGINT NOT NULL DEFAULT 0;
-- When the last ban of the account ended, or will: the channel begins slowly.
ALTER TABLE channel ADD COLUMN banned_until BIGINT NOT NULL DEFAULT 0;

-- What nodes changed, in the order of commits: seq is the revision. Other nodes read what is new.
CREATE TABLE change (
  seq  BIGINT PRIMARY KEY,
  kind TEXT COLLATE "C" NOT NULL, -- channel, token, webhook or key
  key  TEXT COLLATE "C" NOT NULL  -- its code or id; of a webhook '' is any
);
