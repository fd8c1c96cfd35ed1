-- What the status of channels was, beside the event log: found without reading all that happened
-- meanwhile.
CREATE TABLE channel_state (
  channel TEXT NOT NULL,
  seq     INTEGER NOT NULL, -- of the event
  at      INTEGER NOT NULL,
  status  TEXT NOT NULL,
  reason  TEXT NOT NULL,
  PRIMARY KEY (channel, seq)
) WITHOUT ROWID;

CREATE INDEX channel_state_by_time ON channel_state (at);

-- Where a token was last used from, and by what program.
ALTER TABLE token ADD COLUMN last_used_from TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
