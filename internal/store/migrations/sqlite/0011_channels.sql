-- A number of its own for each channel, which a later channel with the same code does not get. New ones are
-- numbered by the revision that adds them, which is higher than any rowid so far.
ALTER TABLE channel ADD COLUMN id INTEGER NOT NULL DEFAULT 0;
UPDATE channel SET id = rowid;

-- The messages up to this seq were accepted for an account that the channel had before.
ALTER TABLE channel ADD COLUMN account_from INTEGER NOT NULL DEFAULT 0;
