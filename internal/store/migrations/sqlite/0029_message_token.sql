-- The id of the token whose request sent a message; NULL: a console session, a contact or the phone itself did.
ALTER TABLE message ADD COLUMN token TEXT;
