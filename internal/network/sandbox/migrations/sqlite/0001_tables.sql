-- A world is what one channel sees of the network: its own phones, groups and faults.
CREATE TABLE worlds (
  id         INTEGER PRIMARY KEY AUTOINCREMENT, -- the channel's own number is made of it, so it is never used again
  channel    TEXT    NOT NULL UNIQUE,
  logged_out INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE phones (
  id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: old rows cannot come to belong to a new phone
  world      INTEGER NOT NULL REFERENCES worlds (id),
  number     TEXT    NOT NULL,
  name       TEXT    NOT NULL DEFAULT '',
  online     INTEGER NOT NULL DEFAULT 1,
  reads      TEXT    NOT NULL DEFAULT 'when_open',
  delay_ms   INTEGER NOT NULL DEFAULT 0,
  blocks     INTEGER NOT NULL DEFAULT 0,
  on_network INTEGER NOT NULL DEFAULT 1,
  lid_only   INTEGER NOT NULL DEFAULT 0,
  answers    INTEGER NOT NULL DEFAULT 0,
  seen_at    INTEGER NOT NULL DEFAULT 0, -- milliseconds; when it was last online
  delivered  INTEGER NOT NULL DEFAULT 0, -- messages up to this seq were reported as delivered
  read       INTEGER NOT NULL DEFAULT 0, -- messages up to this seq are read
  UNIQUE (world, number)
);

-- What went between the channel and its phones, in both directions. The id comes first in its key: ids
-- grow with time, so that the key grows at its end.
CREATE TABLE messages (
  seq            INTEGER PRIMARY KEY, -- over all worlds; only grows
  phone          INTEGER NOT NULL,
  from_phone     INTEGER NOT NULL,    -- 0: from the channel to the phone
  id             TEXT    NOT NULL,
  kind           TEXT    NOT NULL,
  body           TEXT    NOT NULL,
  data           BLOB,
  reply_to       TEXT    NOT NULL,
  at             INTEGER NOT NULL,            -- milliseconds
  copies         INTEGER NOT NULL DEFAULT 1,  -- how often the network was given it
  status         INTEGER NOT NULL DEFAULT 0,  -- 0: follows from the phone's delivered and read
  reaction       TEXT    NOT NULL DEFAULT '', -- the channel's
  phone_reaction TEXT    NOT NULL DEFAULT '',
  votes          TEXT    NOT NULL DEFAULT '', -- JSON; what the phone chose in a poll
  UNIQUE (id, phone, from_phone)
);

CREATE INDEX messages_by_phone ON messages (phone, seq, from_phone);

-- Messages from the channel that are not in the table above yet, the plain ones of one burst in each row.
CREATE TABLE bundles (
  seq  INTEGER PRIMARY KEY, -- of the last message; the others come before it without a gap
  at   INTEGER NOT NULL,    -- milliseconds
  body BLOB    NOT NULL     -- for each message: phone, id, kind, body, data, reply_to; see bundle.go
);

-- What phones did and the channel has not taken yet.
CREATE TABLE events (
  seq    INTEGER PRIMARY KEY,
  phone  INTEGER NOT NULL,
  sender TEXT    NOT NULL, -- as the network names it: a number or a LID
  body   TEXT    NOT NULL, -- JSON
  media  BLOB,
  at     INTEGER NOT NULL
);
CREATE INDEX events_by_phone ON events (phone);

CREATE TABLE faults (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  world    INTEGER NOT NULL REFERENCES worlds (id),
  fault    TEXT    NOT NULL,
  times    INTEGER NOT NULL, -- how many sends it still applies to
  contact  TEXT    NOT NULL,
  kind     TEXT    NOT NULL,
  reason   TEXT    NOT NULL
);
CREATE INDEX faults_by_world ON faults (world);

CREATE TABLE groups (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  world      INTEGER NOT NULL REFERENCES worlds (id),
  name       TEXT    NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX groups_by_world ON groups (world, name);

CREATE TABLE members (
  grp    INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
  number TEXT    NOT NULL,
  PRIMARY KEY (grp, number)
) WITHOUT ROWID;

-- The seq to go on from when those with higher ones were forgotten, or were copies.
CREATE TABLE counter (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL
);
INSERT INTO counter (one, seq) VALUES (1, 0);
