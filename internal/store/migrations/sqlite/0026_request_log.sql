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
