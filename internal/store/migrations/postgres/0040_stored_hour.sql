-- Bytes of files that were stored in an hour, for the limits of a day.
CREATE TABLE stored_hour (
  channel BIGINT NOT NULL,
  chat    BIGINT NOT NULL, -- 0: all files of the channel; -1: those of contacts that never got a message; else those of one such chat
  hour    BIGINT NOT NULL, -- since 1970
  bytes   BIGINT NOT NULL,
  PRIMARY KEY (channel, chat, hour)
);
CREATE INDEX stored_hour_time ON stored_hour (hour);
