-- Files of inbound messages that are still to be fetched from the network. A row is removed when its file is
-- there, when it has failed for good, and with the message.
CREATE TABLE media_fetch (
  seq        INTEGER PRIMARY KEY, -- of the message
  channel    TEXT NOT NULL,
  chat       INTEGER NOT NULL,
  reference  BLOB NOT NULL, -- what the network needs to find it, encrypted
  attempts   INTEGER NOT NULL,
  next_at    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE INDEX media_fetch_due ON media_fetch (next_at, chat);
CREATE INDEX media_fetch_channel ON media_fetch (channel);
