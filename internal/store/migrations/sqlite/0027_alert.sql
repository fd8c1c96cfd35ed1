-- Alert rules: what to watch and whom to notify.
CREATE TABLE alert_rule (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  kind       TEXT NOT NULL,
  channel    TEXT NOT NULL,    -- its code; '': every channel
  share      INTEGER NOT NULL, -- of failing sends, in percent
  minutes    INTEGER NOT NULL, -- over which sends are counted
  url        TEXT NOT NULL,    -- '': a message is sent
  via        TEXT NOT NULL,    -- the code of the channel that sends it
  contact    TEXT NOT NULL,    -- who gets it
  quiet_from TEXT NOT NULL,    -- such as 22:00; '': never quiet
  quiet_to   TEXT NOT NULL,
  quiet_zone TEXT NOT NULL,
  enabled    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What the rules found. One open alert for each cause, so that a restart or another node raises none twice.
CREATE TABLE alert (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  rule        TEXT NOT NULL,
  cause       TEXT NOT NULL,
  channel     TEXT NOT NULL,    -- its code; '': about none
  sentence    TEXT NOT NULL,
  raised_at   INTEGER NOT NULL,
  holds_until INTEGER NOT NULL, -- not resolved before; 0: at any time
  resolved_at INTEGER NOT NULL, -- 0: open
  notified_at INTEGER NOT NULL, -- when the notice was sent; 0: not yet
  closed_at   INTEGER NOT NULL, -- nothing is left to send; 0: something is
  attempts    INTEGER NOT NULL,
  next_at     INTEGER NOT NULL,
  problem     TEXT NOT NULL
);
CREATE UNIQUE INDEX alert_open ON alert (rule, cause) WHERE resolved_at = 0;
CREATE INDEX alert_waiting ON alert (seq) WHERE closed_at = 0;
