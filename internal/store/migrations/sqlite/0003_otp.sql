-- What is known of the one-time codes of a contact on a channel: the newest code and what limits
-- count. It is one row because every try needs all of it.
CREATE TABLE otp_code (
  seq        INTEGER PRIMARY KEY,
  contact    TEXT NOT NULL,
  channel    TEXT NOT NULL,
  id         TEXT NOT NULL,
  hash       BLOB NOT NULL,    -- keyed, of the code
  sealed     BLOB,             -- the encrypted text that carries the code; NULL once the code ended
  status     INTEGER NOT NULL,
  tries      INTEGER NOT NULL, -- wrong ones
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  wrong      BLOB,             -- times, packed; NULL: none
  requests   BLOB              -- times, packed
);

-- No index holds what a try changes. The contact comes first, to find what all channels know of
-- somebody.
CREATE UNIQUE INDEX otp_code_of ON otp_code (contact, channel);
CREATE UNIQUE INDEX otp_code_by_id ON otp_code (id);
CREATE INDEX otp_code_by_time ON otp_code (channel, expires_at);

CREATE TABLE otp_link (
  id         TEXT PRIMARY KEY,
  channel    TEXT NOT NULL,
  contact    TEXT NOT NULL,
  hash       BLOB NOT NULL, -- keyed, of the code
  name       TEXT NOT NULL,
  messages   TEXT NOT NULL, -- JSON
  on_success TEXT NOT NULL,
  on_failure TEXT NOT NULL,
  status     INTEGER NOT NULL,
  tries      INTEGER NOT NULL, -- wrong ones, by the right contact
  others     INTEGER NOT NULL, -- tries by anybody else
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  sealed     BLOB              -- the encrypted prompt, on the sandbox network; NULL elsewhere and once the link ended
) WITHOUT ROWID;

CREATE UNIQUE INDEX otp_link_by_hash ON otp_link (channel, hash);
CREATE UNIQUE INDEX otp_link_of ON otp_link (channel, contact) WHERE status = 0;
CREATE INDEX otp_link_open ON otp_link (channel, expires_at) WHERE status = 0;
CREATE INDEX otp_link_ended ON otp_link (channel, ended_at) WHERE status <> 0;

-- Whom a channel answered because of a login link, to answer nobody too often.
CREATE TABLE otp_reply (
  seq     INTEGER PRIMARY KEY,
  channel TEXT NOT NULL,
  contact TEXT NOT NULL,
  at      INTEGER NOT NULL
);

CREATE INDEX otp_reply_to ON otp_reply (channel, contact, at);
CREATE INDEX otp_reply_by_time ON otp_reply (channel, at);
