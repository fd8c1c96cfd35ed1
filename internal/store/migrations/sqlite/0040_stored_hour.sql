-- Bytes of files that were stored in an hour, for the limits of a day.
CREATE TABLE stored_hour (
  channel INTEGER NOT NULL,
  chat    INTEGER NOT NULL, -- 0: all files of the channel; -1: those of contacts that never got a message; else those of one such chat
  hour    INTEGER NOT NULL, -- since 1970
  bytes   INTEGER NOT NULL,
  PRIMARY KEY (channel, chat, hour)
) WITHOUT ROWID;
CREATE INDEX stored_hour_time ON stored_hour (hour);
