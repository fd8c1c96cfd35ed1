-- Whether the network lets a channel write to new contacts: 0 it does, 1 it does not for an unknown time, else until when.
ALTER TABLE channel ADD COLUMN restricted_until BIGINT NOT NULL DEFAULT 0;
-- When the last ban of the account ended, or will: the channel begins slowly.
ALTER TABLE channel ADD COLUMN banned_until BIGINT NOT NULL DEFAULT 0;
