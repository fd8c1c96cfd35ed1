-- To whom a channel sent one-time codes of late. It is kept only where an operator limits that.
CREATE TABLE otp_crowd (
  channel TEXT NOT NULL,
  contact TEXT NOT NULL,
  at      INTEGER NOT NULL, -- the first time of late
  fresh   INTEGER NOT NULL, -- 1: the channel had no chat with the contact by then
  PRIMARY KEY (channel, contact)
) WITHOUT ROWID;

CREATE INDEX otp_crowd_by_time ON otp_crowd (channel, at);
