-- What a network that assigns ids of its own calls messages, contacts and files.

CREATE TABLE remote_attempt (
  channel INTEGER NOT NULL,
  message TEXT NOT NULL,    -- our id of a message that may have left, until its outcome is known
  contact TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (channel, message)
) WITHOUT ROWID;

CREATE TABLE remote_message (
  channel INTEGER NOT NULL,
  remote  TEXT NOT NULL,    -- the network's id
  message TEXT NOT NULL,    -- ours; a message that left twice has two rows
  contact TEXT NOT NULL,
  from_me INTEGER NOT NULL,
  PRIMARY KEY (channel, remote)
) WITHOUT ROWID;
CREATE INDEX remote_message_id ON remote_message (channel, message);

CREATE TABLE remote_contact (
  channel    INTEGER NOT NULL,
  contact    TEXT NOT NULL,
  user_id    TEXT NOT NULL,    -- the network's id of somebody who may hide the number; '': not known
  username   TEXT NOT NULL,
  name       TEXT NOT NULL,
  inbound    TEXT NOT NULL,    -- the network's id of the newest message that came
  inbound_at INTEGER NOT NULL, -- when it came; 0: none did
  absent_at  INTEGER NOT NULL, -- when the network could not reach the contact; 0: it did not say so since the last message
  PRIMARY KEY (channel, contact)
) WITHOUT ROWID;
-- Those who wrote, by name.
CREATE INDEX remote_contact_name ON remote_contact (channel, name, contact) WHERE inbound_at > 0;
CREATE UNIQUE INDEX remote_contact_user ON remote_contact (channel, user_id) WHERE user_id <> '';

CREATE TABLE remote_file (
  channel INTEGER NOT NULL,
  sha256  BLOB NOT NULL,
  remote  TEXT NOT NULL,    -- the network's id of the uploaded file
  until   INTEGER NOT NULL, -- when the network deletes it
  PRIMARY KEY (channel, sha256)
) WITHOUT ROWID;
