-- The chats of all channels, newest first, and the login links of a contact.
CREATE INDEX chat_recent ON chat ((last_at / 60000), id) WHERE last_at > 0;
CREATE INDEX otp_link_of ON otp_link (contact, created_at);
