-- The last four digits of a number, for people who search by the end of one.
CREATE INDEX chat_number_end ON chat (substr(contact, length(contact) - 8, 4));
