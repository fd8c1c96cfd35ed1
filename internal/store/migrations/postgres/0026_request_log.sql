-- The latest requests of each channel, without their bodies and queries.
CREATE TABLE request_log (
  channel     BIGINT NOT NULL,            -- its number
  seq         BIGINT NOT NULL,            -- in the order of the responses: microseconds since 1970, made unique by the node
  at          BIGINT NOT NULL,            -- when the request arrived
  method      TEXT COLLATE "C" NOT NULL,
  path        TEXT COLLATE "C" NOT NULL,
  status      BIGINT NOT NULL,
  code        TEXT COLLATE "C" NOT NULL,  -- of the error; '': none
  took        BIGINT NOT NULL,            -- in microseconds
  request     TEXT COLLATE "C" NOT NULL,  -- its id
  idempotency TEXT COLLATE "C" NOT NULL,  -- the idempotency key; '': none
  token       TEXT COLLATE "C" NOT NULL,  -- the id of the token
  PRIMARY KEY (channel, seq)
);
