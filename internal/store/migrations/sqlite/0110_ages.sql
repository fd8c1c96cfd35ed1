-- When earlier accounts of the channel were first seen, as JSON: milliseconds by number.
ALTER TABLE channel ADD COLUMN ages TEXT NOT NULL DEFAULT '{}';
