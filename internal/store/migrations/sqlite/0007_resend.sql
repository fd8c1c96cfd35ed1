-- What messages said whose channel keeps no text, encrypted, for devices that could not read them and ask
-- for them again. It goes soon.
CREATE TABLE resend (
  seq    INTEGER PRIMARY KEY, -- of the message
  sealed BLOB NOT NULL,
  at     INTEGER NOT NULL
);

CREATE INDEX resend_by_time ON resend (at);
