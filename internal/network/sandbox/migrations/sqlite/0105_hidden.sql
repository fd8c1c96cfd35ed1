-- Phones that hide their number from the channel: the seq after which they do (0: never), and whether the channel is to hear of the
-- number (1) or did (2).
ALTER TABLE phones ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
ALTER TABLE phones ADD COLUMN known INTEGER NOT NULL DEFAULT 0;
