-- Other spellings of contacts' numbers: the network has its own spelling of some, such as those of Brazil.
CREATE TABLE alias (
  channel INTEGER NOT NULL,
  contact TEXT NOT NULL,    -- the other spelling
  chat    INTEGER NOT NULL, -- of the contact in the network's spelling
  PRIMARY KEY (channel, contact)
) WITHOUT ROWID;

CREATE INDEX alias_chat ON alias (chat);
