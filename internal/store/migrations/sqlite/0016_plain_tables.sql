-- Plain tables: a row per message with its status and its position in the chat, and a row per event. Rows name their channel
-- by its number. A reset changes the number, which hides the old rows at once. They are purged in batches.
--
-- Times are milliseconds since 1970 in UTC, 0 where there is none. Flags are 0 and 1.

-- Channels.
ALTER TABLE channel RENAME TO old_channel;

CREATE TABLE channel (
  id             INTEGER PRIMARY KEY, -- its number; never used again
  code           TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL,
  network        TEXT NOT NULL,
  number         TEXT NOT NULL,
  phone_name     TEXT NOT NULL,
  enabled        INTEGER NOT NULL,
  settings       TEXT NOT NULL,    -- JSON
  created_at     INTEGER NOT NULL,
  status         TEXT NOT NULL,
  reason         TEXT NOT NULL,
  since          INTEGER NOT NULL,
  working_at     INTEGER NOT NULL,
  lasting_status TEXT NOT NULL,    -- the last status that is not only passed through at a start or a stop
  lasting_since  INTEGER NOT NULL,
  account_from   INTEGER NOT NULL, -- messages up to this seq were accepted for an earlier account
  chats          INTEGER NOT NULL DEFAULT 0, -- how many chats with messages it has
  last_received_at  INTEGER NOT NULL DEFAULT 0, -- when it last got a message
  last_confirmed_at INTEGER NOT NULL DEFAULT 0  -- when the network last confirmed one
);

INSERT INTO channel (id, code, name, network, number, phone_name, enabled, settings, created_at, status, reason, since, working_at,
  lasting_status, lasting_since, account_from)
SELECT id, code, name, network, number, phone_name, enabled, settings, created_at, status, reason, since, working_at,
  lasting_status, lasting_since, account_from FROM old_channel;

-- Numbers of channels that were deleted or reset, whose rows are to be purged.
CREATE TABLE retired (
  channel   INTEGER PRIMARY KEY,
  successor INTEGER NOT NULL -- the number that the channel has now; 0: it was deleted
);

-- Messages.
ALTER TABLE message RENAME TO old_message;
ALTER TABLE chat RENAME TO old_chat;
DROP INDEX message_pool;
DROP INDEX chat_by_contact;
DROP INDEX chat_by_time;

CREATE TABLE message (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which messages were accepted
  channel         INTEGER NOT NULL,
  chat            INTEGER NOT NULL,
  position        INTEGER,                     -- in its chat, from 1 without gaps; NULL: not part of the history
  id              TEXT NOT NULL,               -- the network's
  from_me         INTEGER NOT NULL,
  kind            TEXT NOT NULL,
  secret          INTEGER NOT NULL,            -- 1: a one-time code; its text is encrypted
  status          INTEGER NOT NULL,            -- 0 pending, 1 sent, 2 delivered, 3 read, 4 played, 5 failed, 6 deleted, 7 received
  updated_at      INTEGER NOT NULL,            -- when the status last changed
  created_at      INTEGER NOT NULL,            -- by the network's clock
  received_at     INTEGER NOT NULL,            -- when it was accepted or received here; retention counts from it
  priority        INTEGER NOT NULL,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt    INTEGER NOT NULL DEFAULT 0,
  expires_at      INTEGER NOT NULL,
  starred         INTEGER NOT NULL DEFAULT 0,
  reply_to        TEXT NOT NULL,
  pool            TEXT NOT NULL,
  request         TEXT NOT NULL,               -- the id of the request that sent it
  idempotency_key TEXT NOT NULL,               -- that the request had
  failure_code    TEXT NOT NULL DEFAULT '',
  failure         TEXT NOT NULL DEFAULT '',
  failure_until   INTEGER NOT NULL DEFAULT 0,
  body            TEXT NOT NULL,
  data            TEXT                         -- JSON: what there is besides the body; NULL: nothing
);

INSERT INTO message (seq, channel, chat, position, id, from_me, kind, secret, status, updated_at, created_at, received_at, priority,
  attempts, next_attempt, expires_at, starred, reply_to, pool, request, idempotency_key, failure_code, failure, failure_until, body, data)
SELECT m.seq, c.id, m.chat,
  CASE WHEN kind IN ('text', 'image', 'video', 'file', 'voice', 'location', 'poll') THEN row_number() OVER (
    PARTITION BY m.chat, kind IN ('text', 'image', 'video', 'file', 'voice', 'location', 'poll') ORDER BY m.seq) END,
  m.id, from_me, kind, coalesce(kind = 'text' AND substr(data, 1, 7) = CAST('{"otp":' AS BLOB), 0),
  coalesce(s.status, 0), coalesce(s.updated_at, m.created_at), m.created_at, min(m.created_at, unixepoch() * 1000), urgent,
  coalesce(attempts, 0), coalesce(next_attempt, 0), expires_at, starred, reply_to, pool, request, '',
  coalesce(f.code, ''), coalesce(f.message, ''), coalesce(f.until, 0), body, CAST(data AS TEXT)
FROM old_message m
JOIN old_chat ON old_chat.id = m.chat
JOIN channel c ON c.code = old_chat.channel
LEFT JOIN status s ON s.seq = m.seq
LEFT JOIN queue q ON q.channel = m.channel AND q.seq = m.seq
LEFT JOIN failure f ON f.seq = m.seq
ORDER BY m.seq;

DELETE FROM sqlite_sequence WHERE name = 'message';
INSERT INTO sqlite_sequence (name, seq) SELECT 'message', coalesce(max(seq), 0) FROM old_message;

-- The id comes first, so that a bare id is found as well.
CREATE UNIQUE INDEX message_id ON message (id, chat, from_me);
CREATE UNIQUE INDEX message_position ON message (chat, position);
CREATE INDEX message_channel ON message (channel);
CREATE INDEX message_pending ON message (channel) WHERE status = 0;
CREATE INDEX message_failed ON message (seq) WHERE status = 5;
CREATE INDEX message_with_text ON message (channel, received_at) WHERE body <> '' OR data IS NOT NULL;

-- Chats.
CREATE TABLE chat (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  channel  INTEGER NOT NULL,
  contact  TEXT NOT NULL,
  last_at  INTEGER NOT NULL,           -- when it got the first message of the last minute in which it got any; 0: it has none
  archived INTEGER NOT NULL DEFAULT 0,
  known    INTEGER NOT NULL DEFAULT 0 -- 1: the contact approved a one-time code
);

INSERT INTO chat (id, channel, contact, last_at, archived, known)
SELECT o.id, c.id, o.contact,
  CASE WHEN EXISTS (SELECT 1 FROM message WHERE chat = o.id AND position > 0)
    THEN max(o.last_at, coalesce(late.at, 0), 1) ELSE 0 END, archived, known
FROM old_chat o JOIN channel c ON c.code = o.channel
LEFT JOIN (SELECT chat, max(created_at) AS at FROM message
  WHERE seq > (SELECT seq FROM filed) AND position > 0 GROUP BY chat) late ON late.chat = o.id;

-- The contact comes first, to find all channels of a contact.
CREATE UNIQUE INDEX chat_contact ON chat (contact, channel);
-- By the minute: chats are listed by it, and sorted within it.
CREATE INDEX chat_time ON chat (channel, last_at / 60000) WHERE last_at > 0;

UPDATE channel SET chats = (SELECT count(*) FROM chat WHERE chat.channel = channel.id AND last_at > 0);

DROP TABLE filed;
DROP TABLE message_ids;
DROP TABLE name;
DROP TABLE history;
DROP TABLE queue;
DROP TABLE status;
DROP TABLE failure;
DROP TABLE old_message;
DROP TABLE old_chat;

-- Events. The rows of the old table are packed; the program unpacks them.
ALTER TABLE event RENAME TO old_event;
DROP INDEX event_by_time;
DROP INDEX event_sealed;

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

INSERT INTO sqlite_sequence (name, seq) SELECT 'event', max(seq, coalesce((SELECT max(seq) FROM old_event), 0)) FROM log;

CREATE INDEX event_message ON event (message) WHERE message IS NOT NULL;
CREATE INDEX event_channel ON event (channel);
CREATE INDEX event_encrypted ON event (received_at) WHERE encrypted IS NOT NULL;

-- What else belongs to a channel.
ALTER TABLE channel_state RENAME TO old_channel_state;
CREATE TABLE channel_state (
  channel INTEGER NOT NULL,
  seq     INTEGER NOT NULL, -- of the event
  at      INTEGER NOT NULL,
  status  TEXT NOT NULL,
  reason  TEXT NOT NULL,
  PRIMARY KEY (channel, seq)
) WITHOUT ROWID;
INSERT INTO channel_state SELECT c.id, seq, at, o.status, o.reason FROM old_channel_state o JOIN channel c ON c.code = o.channel;
DROP TABLE old_channel_state;

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
INSERT INTO idempotency
SELECT CASE WHEN scope LIKE '*%' THEN scope
    WHEN instr(scope, '+') > 0 THEN 'channel ' || s.id || substr(scope, instr(scope, '+'))
    ELSE 'channel ' || s.id END, key, fingerprint, coalesce(c.id, 0), messages, a.created_at, status_code, content_type, body
FROM answer a LEFT JOIN channel s ON s.code = substr(scope, 1, instr(scope || '+', '+') - 1) LEFT JOIN channel c ON c.code = a.channel
WHERE scope LIKE '*%' OR s.id IS NOT NULL;
DROP TABLE answer;
CREATE INDEX idempotency_time ON idempotency (created_at);
CREATE INDEX idempotency_channel ON idempotency (channel);

ALTER TABLE media_fetch RENAME TO old_media_fetch;
CREATE TABLE media_fetch (
  seq        INTEGER PRIMARY KEY, -- of the message
  channel    INTEGER NOT NULL,
  chat       INTEGER NOT NULL,
  reference  BLOB NOT NULL,       -- what the network needs to find the file, encrypted
  attempts   INTEGER NOT NULL,
  next_at    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
INSERT INTO media_fetch SELECT seq, c.id, chat, reference, attempts, next_at, o.created_at
FROM old_media_fetch o JOIN channel c ON c.code = o.channel;
DROP TABLE old_media_fetch;
CREATE INDEX media_fetch_due ON media_fetch (next_at, chat);
CREATE INDEX media_fetch_channel ON media_fetch (channel);

ALTER TABLE otp_code RENAME TO old_otp_code;
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

ALTER TABLE otp_link RENAME TO old_otp_link;
DROP INDEX otp_link_by_hash;
DROP INDEX otp_link_of;
DROP INDEX otp_link_open;
DROP INDEX otp_link_ended;
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
INSERT INTO otp_link SELECT o.id, c.id, contact, hash, o.name, messages, on_success, on_failure, o.status, tries, others,
  o.created_at, expires_at, ended_at, sealed FROM old_otp_link o JOIN channel c ON c.code = o.channel;
DROP TABLE old_otp_link;
CREATE UNIQUE INDEX otp_link_hash ON otp_link (channel, hash);
CREATE UNIQUE INDEX otp_link_contact ON otp_link (channel, contact) WHERE status = 0;
CREATE INDEX otp_link_open ON otp_link (channel, expires_at) WHERE status = 0;
CREATE INDEX otp_link_ended ON otp_link (channel, ended_at) WHERE status <> 0;

ALTER TABLE otp_reply RENAME TO old_otp_reply;
DROP INDEX otp_reply_to;
DROP INDEX otp_reply_by_time;
CREATE TABLE otp_reply (
  seq     INTEGER PRIMARY KEY,
  channel INTEGER NOT NULL,
  contact TEXT NOT NULL,
  at      INTEGER NOT NULL
);
INSERT INTO otp_reply SELECT seq, c.id, contact, at FROM old_otp_reply o JOIN channel c ON c.code = o.channel;
DROP TABLE old_otp_reply;
CREATE INDEX otp_reply_to ON otp_reply (channel, contact, at);
CREATE INDEX otp_reply_time ON otp_reply (channel, at);

ALTER TABLE otp_stranger RENAME TO old_otp_stranger;
DROP INDEX otp_stranger_by_time;
DROP INDEX otp_stranger_of;
CREATE TABLE otp_stranger (
  code     TEXT PRIMARY KEY,
  channel  INTEGER NOT NULL,
  contact  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  counted  INTEGER NOT NULL, -- 1: the contact counts towards the limits because of it
  approved INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO otp_stranger SELECT o.code, c.id, contact, at, counted, approved FROM old_otp_stranger o JOIN channel c ON c.code = o.channel;
DROP TABLE old_otp_stranger;
CREATE INDEX otp_stranger_time ON otp_stranger (channel, at);
CREATE INDEX otp_stranger_contact ON otp_stranger (channel, contact);

ALTER TABLE otp_wrong RENAME TO old_otp_wrong;
CREATE TABLE otp_wrong (
  channel INTEGER NOT NULL,
  minute  INTEGER NOT NULL, -- since 1970
  tries   INTEGER NOT NULL,
  PRIMARY KEY (channel, minute)
) WITHOUT ROWID;
INSERT INTO otp_wrong SELECT c.id, minute, tries FROM old_otp_wrong o JOIN channel c ON c.code = o.channel;
DROP TABLE old_otp_wrong;

ALTER TABLE otp_alarm RENAME TO old_otp_alarm;
CREATE TABLE otp_alarm (
  channel INTEGER NOT NULL,
  type    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  until   INTEGER NOT NULL, -- it holds until then
  count   INTEGER NOT NULL,
  PRIMARY KEY (channel, type)
) WITHOUT ROWID;
INSERT INTO otp_alarm SELECT c.id, type, at, until, count FROM old_otp_alarm o JOIN channel c ON c.code = o.channel;
DROP TABLE old_otp_alarm;

-- Deliveries. Of the waiting deliveries of a webhook, only the first of each chat is not held. The others wait until it has
-- finished. So due deliveries are found without a walk over the held ones. A callback is never held.
ALTER TABLE delivery RENAME TO old_delivery;
DROP INDEX delivery_first;
DROP INDEX delivery_chat;
DROP INDEX delivery_failed;
DROP INDEX delivery_failed_endpoint;
DROP INDEX delivery_failed_channel;
DROP INDEX delivery_by_event;
DROP INDEX delivery_by_endpoint;
DROP INDEX delivery_by_channel;

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

-- An event goes to an endpoint once.
CREATE UNIQUE INDEX delivery_event ON delivery (event, endpoint);

INSERT OR IGNORE INTO delivery (seq, endpoint, url, event, event_id, type, channel, chat, state, held, attempts, created_at, next_at,
  tried_at, ended_at, took, code, problem, response, earlier)
SELECT seq, endpoint, url, event, event_id, type, c.id, chat, state, held, attempts, seq >> 20, next_at,
  tried_at, ended_at, took, o.code, problem, answer, earlier
FROM old_delivery o JOIN channel c ON c.code = o.channel;

CREATE INDEX delivery_due ON delivery (endpoint, event, next_at) WHERE state = 0 AND held = 0;
CREATE INDEX delivery_chat ON delivery (endpoint, channel, chat, event) WHERE state = 0;
CREATE INDEX delivery_failed ON delivery (endpoint) WHERE state = 2;
CREATE INDEX delivery_endpoint ON delivery (endpoint);
CREATE INDEX delivery_channel ON delivery (channel);
CREATE INDEX delivery_time ON delivery (created_at);
CREATE INDEX delivery_ended ON delivery (state, ended_at) WHERE state > 0;
DROP TABLE old_delivery;

DROP TABLE old_channel;

-- The number of this log, which is part of its events' ids.
ALTER TABLE log DROP COLUMN seq;

-- What happened, by the minute and by the hour; channel 0 is all of them. Times are counted in buckets, whose names end with
-- their upper bound in milliseconds.
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
