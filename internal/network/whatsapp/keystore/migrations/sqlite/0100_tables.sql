-- The tables of whatsapp.db. Later migrations change them.

-- Which channel has which device, and why one has none.
CREATE TABLE channels (
  code   TEXT PRIMARY KEY,
  jid    TEXT NOT NULL, -- of its device; empty: it has none
  status TEXT NOT NULL,
  reason TEXT NOT NULL
) WITHOUT ROWID;

-- Devices: linked to a phone, each with keys of its own. Their numbers are never used again.
CREATE TABLE devices (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  jid              TEXT NOT NULL UNIQUE,
  lid              TEXT NOT NULL,
  registration     INTEGER NOT NULL,
  noise_key        BLOB NOT NULL,
  identity_key     BLOB NOT NULL,
  signed_key       BLOB NOT NULL,
  signed_key_id    INTEGER NOT NULL,
  signature        BLOB NOT NULL,
  adv_secret       BLOB NOT NULL,
  account          BLOB NOT NULL, -- the device's identity as the phone signed it
  platform         TEXT NOT NULL,
  business_name    TEXT NOT NULL,
  push_name        TEXT NOT NULL,
  lid_migration_at INTEGER NOT NULL,
  companion_nonce  TEXT NOT NULL,
  listed           INTEGER NOT NULL DEFAULT 0 -- how many rows it has in the table listed
);

-- What a device stores under a name and reads at every message: see the kinds in state.go.
CREATE TABLE states (
  device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  kind   INTEGER NOT NULL,
  name   TEXT NOT NULL,
  value  BLOB NOT NULL,
  PRIMARY KEY (device, kind, name)
) WITHOUT ROWID;

-- One-time keys with which others begin sessions with a device.
CREATE TABLE prekeys (
  device   INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  id       INTEGER NOT NULL,
  key      BLOB NOT NULL,
  uploaded INTEGER NOT NULL,
  PRIMARY KEY (device, id)
) WITHOUT ROWID;

-- The account's settings, which its devices share: keys, versions, and sums over what was set.
CREATE TABLE setting_keys (
  device      INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  id          BLOB NOT NULL,
  data        BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (device, id)
) WITHOUT ROWID;

CREATE TABLE setting_versions (
  device  INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  name    TEXT NOT NULL,
  version INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  PRIMARY KEY (device, name)
) WITHOUT ROWID;

CREATE TABLE setting_sums (
  device    INTEGER NOT NULL,
  name      TEXT NOT NULL,
  index_mac BLOB NOT NULL,
  version   INTEGER NOT NULL,
  value_mac BLOB NOT NULL,
  PRIMARY KEY (device, name, index_mac, version),
  FOREIGN KEY (device, name) REFERENCES setting_versions (device, name) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE contacts (
  device         INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  jid            TEXT NOT NULL,
  first_name     TEXT NOT NULL DEFAULT '',
  full_name      TEXT NOT NULL DEFAULT '',
  push_name      TEXT NOT NULL DEFAULT '',
  business_name  TEXT NOT NULL DEFAULT '',
  redacted_phone TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (device, jid)
) WITHOUT ROWID;

CREATE TABLE chats (
  device      INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  jid         TEXT NOT NULL,
  muted_until INTEGER NOT NULL DEFAULT 0, -- seconds; -1: for ever
  pinned      INTEGER NOT NULL DEFAULT 0,
  archived    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (device, jid)
) WITHOUT ROWID;

-- What responses to a message are encrypted with, such as votes in a poll. They are purged after some months.
CREATE TABLE message_secrets (
  device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  id     TEXT NOT NULL,
  chat   TEXT NOT NULL,
  sender TEXT NOT NULL,
  secret BLOB NOT NULL,
  day    INTEGER NOT NULL, -- when it was stored, in days since 1970
  PRIMARY KEY (device, id, chat, sender)
) WITHOUT ROWID;
CREATE INDEX message_secrets_day ON message_secrets (day);

-- Messages that were decrypted, which can be done only once. The text is removed once it was processed. The hash stays for as
-- long as the network may deliver the message again.
CREATE TABLE decrypted (
  device    INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  hash      BLOB NOT NULL,
  plaintext BLOB,
  server_at INTEGER NOT NULL, -- seconds
  at        INTEGER NOT NULL, -- milliseconds
  PRIMARY KEY (device, hash)
) WITHOUT ROWID;
CREATE INDEX decrypted_at ON decrypted (at);

-- The two addresses of a person, as each device learned them.
CREATE TABLE people (
  device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  lid    TEXT NOT NULL,
  number TEXT NOT NULL,
  PRIMARY KEY (device, lid),
  UNIQUE (device, number)
) WITHOUT ROWID;

-- The contacts of each device as they are listed. It follows the tables contacts and people.
CREATE TABLE listed (
  device   INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  number   TEXT NOT NULL,
  name     TEXT NOT NULL,
  business INTEGER NOT NULL,
  PRIMARY KEY (device, number)
) WITHOUT ROWID;
CREATE INDEX listed_name ON listed (device, name, number, business);

CREATE TRIGGER listed_added AFTER INSERT ON listed BEGIN
  UPDATE devices SET listed = listed + 1 WHERE id = NEW.device;
END;
CREATE TRIGGER listed_removed AFTER DELETE ON listed BEGIN
  UPDATE devices SET listed = listed - 1 WHERE id = OLD.device;
END;
