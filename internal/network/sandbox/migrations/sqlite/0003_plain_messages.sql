-- Messages of both directions, one row each. Its keys begin with the phone: ids are random, and a key that began with one
-- would touch another page of the index for every message. What the first version packed into bundles is moved here by
-- first_version.go, which then drops that table.
CREATE TABLE message (
  seq            INTEGER PRIMARY KEY, -- position, over all worlds; only grows
  phone          INTEGER NOT NULL,
  from_phone     INTEGER NOT NULL,            -- 0: from the channel to the phone
  id             TEXT    NOT NULL,
  kind           TEXT    NOT NULL,
  body           TEXT    NOT NULL,
  data           BLOB,                        -- JSON; what the content has besides its text
  reply_to       TEXT    NOT NULL,
  at             INTEGER NOT NULL,            -- milliseconds
  copies         INTEGER NOT NULL DEFAULT 1,  -- how often the channel sent it
  status         INTEGER NOT NULL DEFAULT 0,  -- 0: follows from the phone's delivered and read
  reaction       TEXT    NOT NULL DEFAULT '', -- the channel's
  phone_reaction TEXT    NOT NULL DEFAULT '',
  votes          TEXT    NOT NULL DEFAULT '', -- JSON; what the phone chose in a poll
  UNIQUE (phone, id, from_phone)
);
INSERT INTO message (seq, phone, from_phone, id, kind, body, data, reply_to, at, copies, status, reaction, phone_reaction, votes)
  SELECT seq, phone, from_phone, id, kind, body, data, reply_to, at, copies, status, reaction, phone_reaction, votes FROM messages;
DROP TABLE messages;
ALTER TABLE message RENAME TO messages;
CREATE INDEX messages_by_phone ON messages (phone, seq, from_phone);

-- A world whose channel was deleted or reset is removed in batches: its rows go first, then the world.
ALTER TABLE worlds ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worlds ADD COLUMN number TEXT NOT NULL DEFAULT ''; -- the channel's own
UPDATE worlds SET number = printf('999%08d', id);

ALTER TABLE phones ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0; -- milliseconds
ALTER TABLE phones ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;    -- it has a name or setting of its own and is never purged
UPDATE phones SET created_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000,
  changed = name <> '' OR NOT online OR reads <> 'when_open' OR delay_ms <> 0 OR blocks OR NOT on_network OR lid_only;
