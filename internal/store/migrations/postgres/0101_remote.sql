-- What a network that assigns ids of its own calls messages, contacts and files.

CREATE TABLE remote_attempt (
  channel BIGINT NOT NULL,
  message TEXT COLLATE "C" NOT NULL,    -- our id of a message that may have left, until its outcome is known
  contact TEXT COLLATE "C" NOT NULL,
  at      BIGINT NOT NULL,
  PRIMARY KEY (channel, message)
);

CREATE TABLE remote_message (
  channel BIGINT NOT NULL,
  remote  TEXT COLLATE "C" NOT NULL,    -- the network's id
  message TEXT COLLATE "C" NOT NULL,    -- ours; a message that left twice has two rows
  contact TEXT COLLATE "C" NOT NULL,
  from_me BIGINT NOT NULL,
  PRIMARY KEY (channel, remote)
);
CREATE INDEX remote_message_id ON remote_message (channel, message);

CREATE TABLE remote_contact (
  channel    BIGINT NOT NULL,
  contact    TEXT COLLATE "C" NOT NULL,
  user_id    TEXT COLLATE "C" NOT NULL,    -- the network's id of somebody who may hide the number; '': not known
  username   TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  inbound    TEXT COLLATE "C" NOT NULL,    -- the network's id of the newest message that came
  inbound_at BIGINT NOT NULL, -- when it came; 0: none did
  absent_at  BIGINT NOT NULL, -- when the network could not reach the contact; 0: it did not say so since the last message
  PRIMARY KEY (channel, contact)
);
-- Those who wrote, by name.
CREATE INDEX remote_contact_name ON remote_contact (channel, name, contact) WHERE inbound_at > 0;
CREATE UNIQUE INDEX remote_contact_user ON remote_contact (channel, user_id) WHERE user_id <> '';

CREATE TABLE remote_file (
  channel BIGINT NOT NULL,
  sha256  BYTEA NOT NULL,
  remote  TEXT COLLATE "C" NOT NULL,    -- the network's id of the uploaded file
  until   BIGINT NOT NULL, -- when the network deletes it
  PRIMARY KEY (channel, sha256)
);
