CREATE TABLE webhook (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  url           TEXT NOT NULL,
  channel       TEXT NOT NULL, -- '': of every channel
  types         TEXT NOT NULL, -- JSON; [] is every type
  created_at    INTEGER NOT NULL,
  cursor        INTEGER NOT NULL,
  disabled_at   INTEGER NOT NULL,
  reason        TEXT NOT NULL,
  failing_since INTEGER NOT NULL,
  failures      INTEGER NOT NULL
);

CREATE TABLE secret (
  owner      TEXT PRIMARY KEY,
  sealed     BLOB NOT NULL,
  old_sealed BLOB,            -- NULL: there is no old one
  old_until  INTEGER NOT NULL
);

-- Deliveries. Of those that wait for a webhook, only the first of each chat is not held: the others
-- wait behind it, whatever becomes of it. So what may be tried is found without walking over all that
-- must not. A callback is held by nothing.
CREATE TABLE delivery (
  seq        INTEGER PRIMARY KEY, -- what its id is made of; grows with time
  endpoint   TEXT NOT NULL,    -- the webhook's id, or the scheme and host that a callback goes to
  url        TEXT NOT NULL,    -- of a callback; '': it is a webhook's
  event      INTEGER NOT NULL,
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL,
  channel    TEXT NOT NULL,
  chat       TEXT NOT NULL,
  state      INTEGER NOT NULL, -- 0 waiting, 1 delivered, 2 failed
  held       INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  next_at    INTEGER NOT NULL,
  tried_at   INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  took       INTEGER NOT NULL, -- microseconds
  code       INTEGER NOT NULL,
  problem    TEXT NOT NULL,
  answer     TEXT NOT NULL
);

-- The seq is at the end of every index by itself.
-- What waits: the first of each chat, and all of a chat.
CREATE INDEX delivery_first ON delivery (endpoint, event, next_at) WHERE state = 0 AND held = 0;
CREATE INDEX delivery_chat ON delivery (endpoint, channel, chat, event) WHERE state = 0;
-- What failed: little among much.
CREATE INDEX delivery_failed ON delivery (state) WHERE state = 2;
CREATE INDEX delivery_failed_endpoint ON delivery (endpoint) WHERE state = 2;
CREATE INDEX delivery_failed_channel ON delivery (channel) WHERE state = 2;
-- All.
CREATE INDEX delivery_by_event ON delivery (event);
CREATE INDEX delivery_by_endpoint ON delivery (endpoint);
CREATE INDEX delivery_by_channel ON delivery (channel);
