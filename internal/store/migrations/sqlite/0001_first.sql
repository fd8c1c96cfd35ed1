-- Times are milliseconds since 1970 in UTC, 0 where there is none. Statuses are the numbers of the
-- program. Flags are 0 and 1.

CREATE TABLE channel (
  code       TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  network    TEXT NOT NULL,
  number     TEXT NOT NULL,
  phone_name TEXT NOT NULL,
  enabled    INTEGER NOT NULL,
  settings   TEXT NOT NULL, -- JSON
  created_at INTEGER NOT NULL,
  status     TEXT NOT NULL,
  reason     TEXT NOT NULL,
  since      INTEGER NOT NULL,
  working_at INTEGER NOT NULL,
  erased_to  INTEGER NOT NULL DEFAULT 0 -- retention has erased the messages up to this seq
);

CREATE TABLE token (
  seq          INTEGER PRIMARY KEY,
  id           TEXT NOT NULL UNIQUE,
  name         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  channel      TEXT NOT NULL, -- '' where it is not a channel's
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  revoked_at   INTEGER NOT NULL
);

CREATE TABLE signing_key (
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  public     BLOB NOT NULL,
  sealed     BLOB NOT NULL,
  created_at INTEGER NOT NULL
);

-- One row per chat. Its counter and its time are those of the records that are filed. A chat's id is
-- never used again, so that it may be remembered.
CREATE TABLE chat (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  contact  TEXT NOT NULL,
  channel  TEXT NOT NULL,
  messages INTEGER NOT NULL, -- 0: something was done, but nothing said
  last_at  INTEGER NOT NULL,
  archived INTEGER NOT NULL DEFAULT 0
);

-- The contact comes first, to find all channels that talked with somebody.
CREATE UNIQUE INDEX chat_by_contact ON chat (contact, channel);
CREATE INDEX chat_by_time ON chat (channel, last_at);

-- What was said and done, in the order in which it was taken. A send writes this row and nothing else;
-- what is needed to find messages is filled in a moment later, many at a time. Rows are hardly ever
-- changed: to change one field of a wide row costs as much as to write it again. What does change is in
-- narrow tables beside it, by the same seq.
CREATE TABLE message (
  seq        INTEGER PRIMARY KEY,
  channel    TEXT NOT NULL,
  chat       INTEGER NOT NULL,
  id         TEXT NOT NULL,
  from_me    INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  reply_to   TEXT NOT NULL,
  request    TEXT NOT NULL, -- the id of the request that sent it
  urgent     INTEGER NOT NULL,
  pool       TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  starred    INTEGER NOT NULL DEFAULT 0,
  body       TEXT NOT NULL,
  data       BLOB -- what there is besides the body; NULL: nothing
);

CREATE INDEX message_pool ON message (pool) WHERE pool <> '';

-- One row: every message up to this seq is filed.
CREATE TABLE filed (
  seq INTEGER NOT NULL
);

INSERT INTO filed (seq) VALUES (0);

-- One row: the key of the ids that this store chooses for messages.
CREATE TABLE message_ids (
  one INTEGER PRIMARY KEY,
  key BLOB NOT NULL
);

-- Messages by their names, except those whose id this store chose: such an id carries the seq. The id
-- comes first, so that a bare id is found as well.
CREATE TABLE name (
  id      TEXT NOT NULL,
  chat    INTEGER NOT NULL,
  from_me INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  PRIMARY KEY (id, chat, from_me)
) WITHOUT ROWID;

-- Filed: the records of each chat by their place in it, from 1, without holes.
CREATE TABLE history (
  chat    INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  PRIMARY KEY (chat, ordinal)
) WITHOUT ROWID;

-- Filed: messages that were still to be sent when they were filed, and are.
CREATE TABLE queue (
  channel      TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  attempts     INTEGER NOT NULL DEFAULT 0,
  next_attempt INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (channel, seq)
) WITHOUT ROWID;

-- Where messages stand. One that is not here is pending.
CREATE TABLE status (
  seq        INTEGER PRIMARY KEY,
  status     INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

-- Why messages failed that have.
CREATE TABLE failure (
  seq     INTEGER PRIMARY KEY,
  code    TEXT NOT NULL,
  message TEXT NOT NULL,
  until   INTEGER NOT NULL
);

CREATE TABLE reaction (
  seq     INTEGER NOT NULL, -- of the message
  contact TEXT NOT NULL,    -- who reacted; '' is the channel itself
  emoji   TEXT NOT NULL,
  PRIMARY KEY (seq, contact)
) WITHOUT ROWID;

CREATE TABLE answer (
  scope        TEXT NOT NULL,
  key          TEXT NOT NULL,
  fingerprint  BLOB NOT NULL,
  channel      TEXT NOT NULL,
  messages     TEXT NOT NULL, -- JSON
  created_at   INTEGER NOT NULL,
  status_code  INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  body         BLOB,
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE INDEX answer_by_time ON answer (created_at);
CREATE INDEX answer_by_channel ON answer (channel);

-- One row: how often channels, tokens and keys were changed.
CREATE TABLE revision (
  counter INTEGER NOT NULL
);

INSERT INTO revision (counter) VALUES (0);
