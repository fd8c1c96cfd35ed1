-- Whether a contact approved a code once. It is known to the channel by that; who else is can be seen in the
-- history.
ALTER TABLE chat ADD COLUMN known INTEGER NOT NULL DEFAULT 0;

UPDATE chat SET known = 1 WHERE EXISTS (
  SELECT 1 FROM otp_code WHERE otp_code.contact = chat.contact AND otp_code.channel = chat.channel AND status = 1);

DROP TABLE otp_crowd;

-- Codes that channels sent to strangers in the last hour, where that is limited.
CREATE TABLE otp_stranger (
  code     TEXT PRIMARY KEY,
  channel  TEXT NOT NULL,
  contact  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  counted  INTEGER NOT NULL, -- 1: the contact counts towards the limits because of it
  approved INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX otp_stranger_by_time ON otp_stranger (channel, at);
CREATE INDEX otp_stranger_of ON otp_stranger (channel, contact);

-- Wrong tries of the last hour, by minute since 1970.
CREATE TABLE otp_wrong (
  channel TEXT NOT NULL,
  minute  INTEGER NOT NULL,
  tries   INTEGER NOT NULL,
  PRIMARY KEY (channel, minute)
) WITHOUT ROWID;

-- What was last noticed of an attack, by the type of its event.
CREATE TABLE otp_alarm (
  channel TEXT NOT NULL,
  type    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  until   INTEGER NOT NULL, -- it holds until then
  count   INTEGER NOT NULL,
  PRIMARY KEY (channel, type)
) WITHOUT ROWID;
