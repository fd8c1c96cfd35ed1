-- Deletions and resets of channels, with how far they are.
CREATE TABLE deletion (
  id              BIGINT PRIMARY KEY,         -- the number that the channel had
  successor       BIGINT NOT NULL,            -- the number that it has now; 0: it was deleted
  code            TEXT COLLATE "C" NOT NULL DEFAULT '',    -- of the deleted channel; '': it was reset
  network         TEXT COLLATE "C" NOT NULL DEFAULT '',    -- that still stores something of the channel; '': none does
  started_at      BIGINT NOT NULL DEFAULT 0,
  purged          BIGINT NOT NULL DEFAULT 0,  -- 1: no rows with the number are left
  finished_at     BIGINT NOT NULL DEFAULT 0,  -- 0: not yet
  messages        BIGINT NOT NULL DEFAULT -1, -- that the channel had; -1: not counted yet
  messages_purged BIGINT NOT NULL DEFAULT 0,
  problem         TEXT COLLATE "C" NOT NULL DEFAULT ''     -- why the last attempt failed; '': it did not
);
INSERT INTO deletion (id, successor) SELECT channel, successor FROM retired;
DROP TABLE retired;
