-- Deletions and resets of channels, with how far they are.
CREATE TABLE deletion (
  id              INTEGER PRIMARY KEY,         -- the number that the channel had
  successor       INTEGER NOT NULL,            -- the number that it has now; 0: it was deleted
  code            TEXT NOT NULL DEFAULT '',    -- of the deleted channel; '': it was reset
  network         TEXT NOT NULL DEFAULT '',    -- that still stores something of the channel; '': none does
  started_at      INTEGER NOT NULL DEFAULT 0,
  purged          INTEGER NOT NULL DEFAULT 0,  -- 1: no rows with the number are left
  finished_at     INTEGER NOT NULL DEFAULT 0,  -- 0: not yet
  messages        INTEGER NOT NULL DEFAULT -1, -- that the channel had; -1: not counted yet
  messages_purged INTEGER NOT NULL DEFAULT 0,
  problem         TEXT NOT NULL DEFAULT ''     -- why the last attempt failed; '': it did not
);
INSERT INTO deletion (id, successor) SELECT channel, successor FROM retired;
DROP TABLE retired;
