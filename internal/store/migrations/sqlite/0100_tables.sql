-- The tables of parley.db. Later migrations change them.

CREATE TABLE token (
  seq            INTEGER PRIMARY KEY,
  id             TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL,
  kind           TEXT NOT NULL,
  channel        TEXT NOT NULL,                 -- '' where it is not a channel's
  created_at     INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  last_used_at   INTEGER NOT NULL,
  revoked_at     INTEGER NOT NULL,
  last_used_from TEXT NOT NULL DEFAULT '',
  user_agent     TEXT NOT NULL DEFAULT '',
  role           TEXT NOT NULL DEFAULT 'owner', -- of an admin token: viewer, support, operator or owner; '' for other kinds
  signed_by      TEXT NOT NULL DEFAULT '',      -- the id of the key that signed it; no other key may verify it
  dev            INTEGER NOT NULL DEFAULT 0     -- 1: parley dev wrote it to dev.env; only a development server accepts it
);

CREATE TABLE signing_key (
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  public     BLOB NOT NULL,
  sealed     BLOB NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE reaction (
  seq     INTEGER NOT NULL, -- of the message
  contact TEXT NOT NULL,    -- who reacted; '' is the channel itself
  emoji   TEXT NOT NULL,
  PRIMARY KEY (seq, contact)
) WITHOUT ROWID;

CREATE TABLE revision (
  counter INTEGER NOT NULL
);

CREATE TABLE log (
  number     INTEGER NOT NULL,
  removed_to INTEGER NOT NULL DEFAULT 0 -- events up to this seq were removed
);

CREATE TABLE webhook (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  url           TEXT NOT NULL,
  channel       TEXT NOT NULL,              -- '': of every channel
  types         TEXT NOT NULL,              -- JSON; [] is every type
  created_at    INTEGER NOT NULL,
  cursor        INTEGER NOT NULL,
  disabled_at   INTEGER NOT NULL,
  reason        TEXT NOT NULL,
  failing_since INTEGER NOT NULL,
  failures      INTEGER NOT NULL,
  failing_ms    INTEGER NOT NULL DEFAULT 0,
  lost          INTEGER NOT NULL DEFAULT 0, -- events that were removed before they were delivered
  lost_at       INTEGER NOT NULL DEFAULT 0,
  signed_media  INTEGER NOT NULL DEFAULT 0  -- 1: links to files in its events are signed and need no token
);

CREATE TABLE secret (
  owner      TEXT PRIMARY KEY,
  sealed     BLOB NOT NULL,
  old_sealed BLOB, -- NULL: there is no old one
  old_until  INTEGER NOT NULL
);

CREATE TABLE ticket (
  hash           BLOB PRIMARY KEY,              -- SHA-256 of the secret
  purpose        TEXT NOT NULL,
  channel        TEXT NOT NULL,                 -- '': of none
  created_at     INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  used_at        INTEGER NOT NULL,              -- 0: not used
  role           TEXT NOT NULL DEFAULT 'owner', -- what a console session may do
  name           TEXT NOT NULL DEFAULT '',      -- whom it is for
  token          TEXT NOT NULL DEFAULT '',      -- the id of the admin token that made the link; '': none
  ends_at        INTEGER NOT NULL DEFAULT 0,    -- when a session ends however much it is used
  last_used_at   INTEGER NOT NULL DEFAULT 0,
  last_used_from TEXT NOT NULL DEFAULT '',
  user_agent     TEXT NOT NULL DEFAULT '',
  parent         BLOB                           -- the session in which the link was made; NULL: it was made outside the console
) WITHOUT ROWID;
CREATE INDEX ticket_by_end ON ticket (expires_at);
CREATE INDEX ticket_token ON ticket (token) WHERE token <> '';
CREATE INDEX ticket_parent ON ticket (parent) WHERE parent IS NOT NULL;

CREATE TABLE resend (
  seq    INTEGER PRIMARY KEY, -- of the message
  sealed BLOB NOT NULL,
  at     INTEGER NOT NULL
);
CREATE INDEX resend_by_time ON resend (at);

CREATE TABLE clock (
  at INTEGER NOT NULL
);

CREATE TABLE channel (
  id                INTEGER PRIMARY KEY,        -- its number; never used again
  code              TEXT NOT NULL UNIQUE,
  name              TEXT NOT NULL,
  network           TEXT NOT NULL,
  number            TEXT NOT NULL,
  phone_name        TEXT NOT NULL,
  enabled           INTEGER NOT NULL,
  settings          TEXT NOT NULL,              -- JSON
  created_at        INTEGER NOT NULL,
  status            TEXT NOT NULL,
  reason            TEXT NOT NULL,
  since             INTEGER NOT NULL,
  working_at        INTEGER NOT NULL,
  lasting_status    TEXT NOT NULL,              -- the last status that is not only passed through at a start or a stop
  lasting_since     INTEGER NOT NULL,
  account_from      INTEGER NOT NULL,           -- messages up to this seq were accepted for an earlier account
  chats             INTEGER NOT NULL DEFAULT 0, -- how many chats with messages it has
  last_received_at  INTEGER NOT NULL DEFAULT 0, -- when it last got a message
  last_confirmed_at INTEGER NOT NULL DEFAULT 0, -- when the network last confirmed one
  labels            TEXT NOT NULL DEFAULT '[]'  -- JSON, sorted
);
-- Whether there is a channel on a real network is asked when a request names no channel.
CREATE INDEX channel_live ON channel (id) WHERE network <> 'sandbox';

CREATE TABLE message (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which messages were accepted
  channel         INTEGER NOT NULL,
  chat            INTEGER NOT NULL,
  position        INTEGER,                           -- in its chat, from 1 without gaps; NULL: not part of the history
  id              TEXT NOT NULL,                     -- the network's
  from_me         INTEGER NOT NULL,
  kind            TEXT NOT NULL,
  secret          INTEGER NOT NULL,                  -- 1: a one-time code; its text is encrypted
  status          INTEGER NOT NULL,                  -- 0 pending, 1 sent, 2 delivered, 3 read, 4 played, 5 failed, 6 deleted, 7 received
  updated_at      INTEGER NOT NULL,                  -- when the status last changed
  created_at      INTEGER NOT NULL,                  -- by the network's clock
  received_at     INTEGER NOT NULL,                  -- when it was accepted or received here; retention counts from it
  priority        INTEGER NOT NULL,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt    INTEGER NOT NULL DEFAULT 0,
  expires_at      INTEGER NOT NULL,
  starred         INTEGER NOT NULL DEFAULT 0,
  reply_to        TEXT NOT NULL,
  pool            TEXT NOT NULL,
  request         TEXT NOT NULL,                     -- the id of the request that sent it
  idempotency_key TEXT NOT NULL,                     -- that the request had
  failure_code    TEXT NOT NULL DEFAULT '',
  failure         TEXT NOT NULL DEFAULT '',
  failure_until   INTEGER NOT NULL DEFAULT 0,
  body            TEXT NOT NULL,
  data            TEXT,                              -- JSON: what there is besides the body; NULL: nothing
  author          TEXT NOT NULL DEFAULT '',          -- who wrote an inbound message in a group; '': elsewhere
  edited_at       INTEGER NOT NULL DEFAULT 0,        -- when its text was last changed; 0: never
  file            TEXT,                              -- the key of the stored file in data; NULL: none
  token           TEXT -- the id of the token whose request sent it; NULL: a console session, a contact or the phone itself did
);
CREATE UNIQUE INDEX message_id ON message (id, chat, from_me);
CREATE UNIQUE INDEX message_position ON message (chat, position);
CREATE INDEX message_channel ON message (channel);
CREATE INDEX message_pending ON message (channel) WHERE status = 0;
CREATE INDEX message_failed ON message (seq) WHERE status = 5;
CREATE INDEX message_with_text ON message (channel, received_at) WHERE body <> '' OR data IS NOT NULL;
CREATE INDEX message_file ON message (file) WHERE file IS NOT NULL;
-- The failed messages of a channel, newest first.
CREATE INDEX message_failed_of ON message (channel, seq) WHERE status = 5;

CREATE TABLE chat (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  channel  INTEGER NOT NULL,
  contact  TEXT NOT NULL,
  last_at  INTEGER NOT NULL,          -- when it got the first message of the last minute in which it got any; 0: it has none
  archived INTEGER NOT NULL DEFAULT 0,
  known    INTEGER NOT NULL DEFAULT 0 -- 1: the contact approved a one-time code
);
CREATE UNIQUE INDEX chat_contact ON chat (contact, channel);
-- The chats of a channel and of all, newest first. Plain columns: an index alone tells where a page begins. All chats of a channel
-- are in it, so that a purge finds them.
CREATE INDEX chat_time ON chat (channel, last_at, id);
CREATE INDEX chat_recent ON chat (last_at, id) WHERE last_at > 0;

CREATE TABLE event (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  channel     INTEGER NOT NULL,
  type        INTEGER NOT NULL, -- see event.go
  at          INTEGER NOT NULL, -- when it happened, by the network's clock
  received_at INTEGER NOT NULL, -- when it was stored; retention counts from it
  message     INTEGER,          -- the seq of the message that it is about; NULL: none
  status      INTEGER NOT NULL, -- that the message got or had
  contact     TEXT NOT NULL,    -- whose chat it happened in, if it is about no message
  data        TEXT,             -- JSON; NULL: nothing
  encrypted   BLOB              -- the text of a message whose channel stores none, until it is delivered; NULL: nothing
);
CREATE INDEX event_message ON event (message) WHERE message IS NOT NULL;
CREATE INDEX event_channel ON event (channel);
CREATE INDEX event_encrypted ON event (received_at) WHERE encrypted IS NOT NULL;

CREATE TABLE channel_state (
  channel INTEGER NOT NULL,
  seq     INTEGER NOT NULL, -- of the event
  at      INTEGER NOT NULL,
  status  TEXT NOT NULL,
  reason  TEXT NOT NULL,
  PRIMARY KEY (channel, seq)
) WITHOUT ROWID;
CREATE INDEX channel_state_time ON channel_state (at);

CREATE TABLE idempotency (
  scope        TEXT NOT NULL,    -- 'channel ' and its number, or the kind of token
  key          TEXT NOT NULL,
  fingerprint  BLOB NOT NULL,    -- of the request
  channel      INTEGER NOT NULL, -- 0: none
  messages     TEXT NOT NULL,    -- JSON
  created_at   INTEGER NOT NULL,
  status_code  INTEGER NOT NULL, -- of the response; 0: it is not stored yet
  content_type TEXT NOT NULL,
  body         BLOB,
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_time ON idempotency (created_at);
CREATE INDEX idempotency_channel ON idempotency (channel);

CREATE TABLE media_fetch (
  seq        INTEGER PRIMARY KEY, -- of the message
  channel    INTEGER NOT NULL,
  chat       INTEGER NOT NULL,
  reference  BLOB NOT NULL,       -- what the network needs to find the file, encrypted
  attempts   INTEGER NOT NULL,
  next_at    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX media_fetch_due ON media_fetch (next_at, chat);
CREATE INDEX media_fetch_channel ON media_fetch (channel);

CREATE TABLE otp_code (
  seq        INTEGER PRIMARY KEY,
  contact    TEXT NOT NULL,
  channel    INTEGER NOT NULL,
  id         TEXT NOT NULL,
  hash       BLOB NOT NULL,    -- keyed, of the code
  encrypted  BLOB,             -- the text that carries the code; NULL once the code ended
  status     INTEGER NOT NULL, -- 0 pending, 1 approved, 2 expired, 3 invalid
  tries      INTEGER NOT NULL, -- wrong ones
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  wrong      TEXT NOT NULL,    -- JSON: the times of wrong tries
  requests   TEXT NOT NULL     -- JSON: the times of requests
);
CREATE UNIQUE INDEX otp_code_contact ON otp_code (contact, channel);
CREATE UNIQUE INDEX otp_code_id ON otp_code (id);
CREATE INDEX otp_code_time ON otp_code (channel, expires_at);

CREATE TABLE otp_link (
  id         TEXT PRIMARY KEY,
  channel    INTEGER NOT NULL,
  contact    TEXT NOT NULL,
  hash       BLOB NOT NULL,    -- keyed, of the code
  name       TEXT NOT NULL,
  messages   TEXT NOT NULL,    -- JSON
  on_success TEXT NOT NULL,
  on_failure TEXT NOT NULL,
  status     INTEGER NOT NULL,
  tries      INTEGER NOT NULL, -- wrong ones, by the right contact
  others     INTEGER NOT NULL, -- tries by anybody else
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  encrypted  BLOB              -- the prompt, on the sandbox network; NULL elsewhere and once the link ended
) WITHOUT ROWID;
CREATE UNIQUE INDEX otp_link_hash ON otp_link (channel, hash);
CREATE UNIQUE INDEX otp_link_contact ON otp_link (channel, contact) WHERE status = 0;
CREATE INDEX otp_link_open ON otp_link (channel, expires_at) WHERE status = 0;
CREATE INDEX otp_link_ended ON otp_link (channel, ended_at) WHERE status <> 0;
CREATE INDEX otp_link_of ON otp_link (contact, created_at);

CREATE TABLE otp_reply (
  seq     INTEGER PRIMARY KEY,
  channel INTEGER NOT NULL,
  contact TEXT NOT NULL,
  at      INTEGER NOT NULL
);
CREATE INDEX otp_reply_to ON otp_reply (channel, contact, at);
CREATE INDEX otp_reply_time ON otp_reply (channel, at);

CREATE TABLE otp_stranger (
  code     TEXT PRIMARY KEY,
  channel  INTEGER NOT NULL,
  contact  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  counted  INTEGER NOT NULL, -- 1: the contact counts towards the limits because of it
  approved INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX otp_stranger_time ON otp_stranger (channel, at);
CREATE INDEX otp_stranger_contact ON otp_stranger (channel, contact);

CREATE TABLE otp_wrong (
  channel INTEGER NOT NULL,
  minute  INTEGER NOT NULL, -- since 1970
  tries   INTEGER NOT NULL,
  PRIMARY KEY (channel, minute)
) WITHOUT ROWID;

CREATE TABLE otp_alarm (
  channel INTEGER NOT NULL,
  type    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  until   INTEGER NOT NULL, -- it holds until then
  count   INTEGER NOT NULL,
  PRIMARY KEY (channel, type)
) WITHOUT ROWID;

CREATE TABLE delivery (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint   TEXT NOT NULL,    -- the webhook's id, or the scheme and host that a callback goes to
  url        TEXT NOT NULL,    -- of a callback; '': it is a webhook's
  event      INTEGER NOT NULL,
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL,
  channel    INTEGER NOT NULL,
  chat       TEXT NOT NULL,
  state      INTEGER NOT NULL, -- 0 waiting, 1 delivered, 2 failed
  held       INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  next_at    INTEGER NOT NULL,
  tried_at   INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  took       INTEGER NOT NULL, -- microseconds
  code       INTEGER NOT NULL,
  problem    TEXT NOT NULL,
  response   TEXT NOT NULL,
  earlier    TEXT NOT NULL     -- JSON: the attempts before the last one; '': none
);
CREATE UNIQUE INDEX delivery_event ON delivery (event, endpoint);
CREATE INDEX delivery_due ON delivery (endpoint, event, next_at) WHERE state = 0 AND held = 0;
CREATE INDEX delivery_chat ON delivery (endpoint, channel, chat, event) WHERE state = 0;
CREATE INDEX delivery_failed ON delivery (endpoint) WHERE state = 2;
CREATE INDEX delivery_endpoint ON delivery (endpoint);
CREATE INDEX delivery_channel ON delivery (channel);
CREATE INDEX delivery_time ON delivery (created_at);
CREATE INDEX delivery_ended ON delivery (state, ended_at) WHERE state > 0;
-- Waiting callbacks are found by their event. They are few among all deliveries.
CREATE INDEX delivery_callback ON delivery (event, endpoint, next_at) WHERE state = 0 AND url <> '';

CREATE TABLE counter_minute (
  channel INTEGER NOT NULL,
  minute  INTEGER NOT NULL, -- since 1970
  what    TEXT NOT NULL,
  webhook TEXT NOT NULL,    -- empty: not of a webhook
  n       INTEGER NOT NULL,
  PRIMARY KEY (channel, minute, what, webhook)
) WITHOUT ROWID;
CREATE INDEX counter_minute_time ON counter_minute (minute);

CREATE TABLE counter_hour (
  channel INTEGER NOT NULL,
  hour    INTEGER NOT NULL, -- since 1970
  what    TEXT NOT NULL,
  webhook TEXT NOT NULL,
  n       INTEGER NOT NULL,
  PRIMARY KEY (channel, hour, what, webhook)
) WITHOUT ROWID;
CREATE INDEX counter_hour_time ON counter_hour (hour);

CREATE TABLE alias (
  channel INTEGER NOT NULL,
  contact TEXT NOT NULL,    -- the other spelling
  chat    INTEGER NOT NULL, -- of the contact in the network's spelling
  PRIMARY KEY (channel, contact)
) WITHOUT ROWID;
CREATE INDEX alias_chat ON alias (chat);
-- A contact by another spelling, on any channel.
CREATE INDEX alias_contact ON alias (contact);

CREATE TABLE retired_webhook (id TEXT PRIMARY KEY) WITHOUT ROWID;

-- Files that callers sent for later messages.
CREATE TABLE upload (
  id       TEXT PRIMARY KEY,        -- the name that the file is stored under
  channel  INTEGER NOT NULL,
  mime     TEXT NOT NULL,
  filename TEXT NOT NULL,
  size     INTEGER NOT NULL,
  at       INTEGER NOT NULL,        -- when it was uploaded or last used
  used     INTEGER NOT NULL,        -- 1: a message was made of it
  file     TEXT NOT NULL DEFAULT '' -- the key of its row in file
) WITHOUT ROWID;
CREATE INDEX upload_channel ON upload (channel, used, size, at);
CREATE INDEX upload_time ON upload (at);
CREATE INDEX upload_file ON upload (file);

-- What was done through the management API, by whom. Entries are never changed; they are deleted after a year.
CREATE TABLE audit (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  at           INTEGER NOT NULL,
  actor_kind   TEXT NOT NULL, -- token, session or local
  actor        TEXT NOT NULL, -- the id of the token or session
  actor_name   TEXT NOT NULL,
  role         TEXT NOT NULL,
  action       TEXT NOT NULL,
  object       TEXT NOT NULL,
  address      TEXT NOT NULL,
  request      TEXT NOT NULL,
  changed_from TEXT,          -- JSON; NULL: nothing
  changed_to   TEXT
);
CREATE INDEX audit_time ON audit (at);
CREATE INDEX audit_object ON audit (object, seq);
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'entries of the audit log are never changed'); END;

-- The latest requests of each channel, without their bodies and queries.
CREATE TABLE request_log (
  channel     INTEGER NOT NULL, -- its number
  seq         INTEGER NOT NULL, -- in the order of the responses: microseconds since 1970, made unique by the node
  at          INTEGER NOT NULL, -- when the request arrived
  method      TEXT NOT NULL,
  path        TEXT NOT NULL,
  status      INTEGER NOT NULL,
  code        TEXT NOT NULL,    -- of the error; '': none
  took        INTEGER NOT NULL, -- in microseconds
  request     TEXT NOT NULL,    -- its id
  idempotency TEXT NOT NULL,    -- the idempotency key; '': none
  token       TEXT NOT NULL,    -- the id of the token
  PRIMARY KEY (channel, seq)
) WITHOUT ROWID;

-- Alert rules: what to watch and whom to notify.
CREATE TABLE alert_rule (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  kind       TEXT NOT NULL,
  channel    TEXT NOT NULL,    -- its code; '': every channel
  share      INTEGER NOT NULL, -- of failing sends, in percent
  minutes    INTEGER NOT NULL, -- over which sends are counted
  url        TEXT NOT NULL,    -- '': a message is sent
  via        TEXT NOT NULL,    -- the code of the channel that sends it
  contact    TEXT NOT NULL,    -- who gets it
  quiet_from TEXT NOT NULL,    -- such as 22:00; '': never quiet
  quiet_to   TEXT NOT NULL,
  quiet_zone TEXT NOT NULL,
  enabled    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What the rules found. One open alert for each cause, so that a restart or another node raises none twice.
CREATE TABLE alert (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  rule        TEXT NOT NULL,
  cause       TEXT NOT NULL,
  channel     TEXT NOT NULL,             -- its code; '': about none
  sentence    TEXT NOT NULL,
  raised_at   INTEGER NOT NULL,
  holds_until INTEGER NOT NULL,          -- not resolved before; 0: at any time
  resolved_at INTEGER NOT NULL,          -- 0: open
  notified_at INTEGER NOT NULL,          -- when the notice was sent; 0: not yet
  closed_at   INTEGER NOT NULL,          -- nothing is left to send; 0: something is
  attempts    INTEGER NOT NULL,
  next_at     INTEGER NOT NULL,
  problem     TEXT NOT NULL,
  failed      INTEGER NOT NULL DEFAULT 0 -- messages of its notices that failed for good: the next one has another idempotency key
);
CREATE UNIQUE INDEX alert_open ON alert (rule, cause) WHERE resolved_at = 0;
CREATE INDEX alert_waiting ON alert (seq) WHERE closed_at = 0;

-- Deletions and resets of channels, with how far they are.
CREATE TABLE deletion (
  id              INTEGER PRIMARY KEY,         -- the number that the channel had
  successor       INTEGER NOT NULL,            -- the number that it has now; 0: it was deleted
  code            TEXT NOT NULL DEFAULT '',    -- of the deleted channel; '': it was reset
  network         TEXT NOT NULL DEFAULT '',    -- that still stores something of the channel; '': none does
  started_at      INTEGER NOT NULL DEFAULT 0,
  purged          INTEGER NOT NULL DEFAULT 0,  -- 1: no rows with the number are left
  finished_at     INTEGER NOT NULL DEFAULT 0,  -- 0: not yet
  messages        INTEGER NOT NULL DEFAULT -1, -- that the channel had; -1: not counted yet
  messages_purged INTEGER NOT NULL DEFAULT 0,
  problem         TEXT NOT NULL DEFAULT ''     -- why the last attempt failed; '': it did not
);

-- Stored files. Messages and uploads of a channel with the same content name the same file.
CREATE TABLE file (
  key     TEXT PRIMARY KEY, -- the name that it is stored under
  channel INTEGER NOT NULL,
  sha256  BLOB NOT NULL,
  size    INTEGER NOT NULL,
  at      INTEGER NOT NULL  -- when it was stored
) WITHOUT ROWID;
CREATE UNIQUE INDEX file_content ON file (channel, sha256);

-- Bytes of files that were stored in an hour, for the limits of a day.
CREATE TABLE stored_hour (
  channel INTEGER NOT NULL,
  chat    INTEGER NOT NULL, -- 0: all files of the channel; -1: those of contacts that never got a message; else those of one such chat
  hour    INTEGER NOT NULL, -- since 1970
  bytes   INTEGER NOT NULL,
  PRIMARY KEY (channel, chat, hour)
) WITHOUT ROWID;
CREATE INDEX stored_hour_time ON stored_hour (hour);

-- Where the data of this file was moved to. No row: nowhere.
CREATE TABLE moved (
  destination TEXT NOT NULL
);

INSERT INTO revision (counter) VALUES (0);
INSERT INTO log (number) VALUES (abs(random()) % 16777216);
INSERT INTO clock (at) VALUES (0);
