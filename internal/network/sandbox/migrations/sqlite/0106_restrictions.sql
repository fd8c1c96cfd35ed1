-- How long a fault restricts the account; -1: not chosen, 0: the network does not say until when.
ALTER TABLE faults ADD COLUMN seconds INTEGER NOT NULL DEFAULT -1;
