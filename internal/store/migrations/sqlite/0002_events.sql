-- The event log. A row holds the events of one channel that were written together, because many come
-- together: every receipt is about several messages. The last of them has the row's seq, the others
-- those before it. Message events name their message; what it says is in the message.
CREATE TABLE event (
  seq     INTEGER PRIMARY KEY,
  count   INTEGER NOT NULL,
  channel TEXT NOT NULL,
  at      INTEGER NOT NULL, -- of the earliest
  entries BLOB NOT NULL,
  sealed  BLOB              -- the encrypted text of a message whose channel keeps none; NULL: none
);

CREATE INDEX event_by_time ON event (at);
CREATE INDEX event_sealed ON event (at) WHERE sealed IS NOT NULL;

-- One row: a number of this log's own, which is part of its events' ids, and how far it got when
-- entries at its end were removed.
CREATE TABLE log (
  number INTEGER NOT NULL,
  seq    INTEGER NOT NULL
);

INSERT INTO log (number, seq) VALUES (abs(random()) % 16777216, 0);
