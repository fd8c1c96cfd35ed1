-- The attempts of a delivery before the last one, as JSON; '': there are none.
ALTER TABLE delivery ADD COLUMN earlier TEXT NOT NULL DEFAULT '';
