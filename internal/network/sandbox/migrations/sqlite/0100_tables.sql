-- The tables of sandbox.db. Later migrations change them.

-- A world is what one channel sees of the network: its own phones, groups and faults.
CREATE TABLE worlds (
  id            INTEGER PRIMARY KEY AUTOINCREMENT, -- the channel's own number is made of it, so it is never used again
  channel       TEXT NOT NULL UNIQUE,
  logged_out    INTEGER NOT NULL DEFAULT 0,
  removed       INTEGER NOT NULL DEFAULT 0,        -- its channel was deleted or reset: its rows are removed in batches
  number        TEXT NOT NULL DEFAULT '',          -- the channel's own
  contact_count INTEGER NOT NULL DEFAULT 0,        -- phones with a name; triggers count them, so that a page shows the total
  group_count   INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE phones (
  id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: old rows cannot come to belong to a new phone
  world      INTEGER NOT NULL REFERENCES worlds (id),
  number     TEXT NOT NULL,
  name       TEXT NOT NULL DEFAULT '',
  online     INTEGER NOT NULL DEFAULT 1,
  reads      TEXT NOT NULL DEFAULT 'when_open',
  delay_ms   INTEGER NOT NULL DEFAULT 0,
  blocks     INTEGER NOT NULL DEFAULT 0,
  on_network INTEGER NOT NULL DEFAULT 1,
  lid_only   INTEGER NOT NULL DEFAULT 0,
  answers    INTEGER NOT NULL DEFAULT 0,
  seen_at    INTEGER NOT NULL DEFAULT 0, -- milliseconds; when it was last online
  delivered  INTEGER NOT NULL DEFAULT 0, -- messages up to this seq were reported as delivered
  read       INTEGER NOT NULL DEFAULT 0, -- messages up to this seq are read
  created_at INTEGER NOT NULL DEFAULT 0, -- milliseconds
  changed    INTEGER NOT NULL DEFAULT 0, -- it has a name or setting of its own and is never purged
  UNIQUE (world, number)
);
-- Contacts in the order of their pages.
CREATE INDEX contacts_by_name ON phones (world, name, number) WHERE name <> '';

-- Messages of both directions, one row each. Ids of messages that are sent together have neighbouring entries in an index, so few pages
-- are written for them. A message in a group has a row for each member.
CREATE TABLE messages (
  seq            INTEGER PRIMARY KEY,         -- position, over all worlds; only grows
  phone          INTEGER NOT NULL,
  from_phone     INTEGER NOT NULL,            -- 0: from the channel to the phone; 2: another member of the group wrote it
  id             TEXT NOT NULL,
  kind           TEXT NOT NULL,
  body           TEXT NOT NULL,
  data           BLOB,                        -- JSON; what the content has besides its text
  reply_to       TEXT NOT NULL,
  at             INTEGER NOT NULL,            -- milliseconds
  copies         INTEGER DEFAULT 1,           -- how often the channel sent it; never NULL: see deliverMany
  status         INTEGER NOT NULL DEFAULT 0,  -- 0: follows from the phone's delivered and read
  reaction       TEXT NOT NULL DEFAULT '',    -- the channel's
  phone_reaction TEXT NOT NULL DEFAULT '',
  votes          TEXT NOT NULL DEFAULT '',    -- JSON; what the phone chose in a poll
  grp            INTEGER NOT NULL DEFAULT 0,  -- the row of the group; 0: the chat of a phone with the channel
  author         TEXT NOT NULL DEFAULT '',    -- the number of the other member
  edited_at      INTEGER NOT NULL DEFAULT 0,  -- milliseconds; when its text was last changed; 0: never
  UNIQUE (id, phone, from_phone)
);
CREATE INDEX messages_by_phone ON messages (phone, seq, from_phone);

-- What phones did and the channel has not accepted yet.
CREATE TABLE events (
  seq    INTEGER PRIMARY KEY,
  phone  INTEGER NOT NULL,
  sender TEXT NOT NULL, -- as the network names it: a number or a LID
  body   TEXT NOT NULL, -- JSON
  at     INTEGER NOT NULL
);
CREATE INDEX events_by_phone ON events (phone);

CREATE TABLE faults (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  world   INTEGER NOT NULL REFERENCES worlds (id),
  fault   TEXT NOT NULL,
  times   INTEGER NOT NULL, -- how many sends it still applies to
  contact TEXT NOT NULL,
  kind    TEXT NOT NULL,
  reason  TEXT NOT NULL
);
CREATE INDEX faults_by_world ON faults (world);

CREATE TABLE groups (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  world      INTEGER NOT NULL REFERENCES worlds (id),
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  gone       INTEGER NOT NULL DEFAULT 0 -- 1: the channel left it
);
CREATE INDEX groups_by_world ON groups (world, name);

CREATE TABLE members (
  grp    INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
  number TEXT NOT NULL,
  PRIMARY KEY (grp, number)
) WITHOUT ROWID;

-- The seq to continue from when rows with higher ones were purged, or were copies.
CREATE TABLE counter (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL
);
INSERT INTO counter (one, seq) VALUES (1, 0);

CREATE TRIGGER count_added_contact AFTER INSERT ON phones WHEN new.name <> '' BEGIN
  UPDATE worlds SET contact_count = contact_count + 1 WHERE id = new.world;
END;
CREATE TRIGGER count_renamed_contact AFTER UPDATE OF name ON phones WHEN (old.name <> '') <> (new.name <> '') BEGIN
  UPDATE worlds SET contact_count = contact_count + (new.name <> '') - (old.name <> '') WHERE id = new.world;
END;
CREATE TRIGGER count_deleted_contact AFTER DELETE ON phones WHEN old.name <> '' BEGIN
  UPDATE worlds SET contact_count = contact_count - 1 WHERE id = old.world;
END;
CREATE TRIGGER count_added_group AFTER INSERT ON groups BEGIN
  UPDATE worlds SET group_count = group_count + 1 WHERE id = new.world;
END;
CREATE TRIGGER count_deleted_group AFTER DELETE ON groups BEGIN
  UPDATE worlds SET group_count = group_count - 1 WHERE id = old.world;
END;
