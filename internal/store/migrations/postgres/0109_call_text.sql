-- When the contact was last sent the text of rejected calls; 0: never.
ALTER TABLE chat ADD COLUMN call_text_at BIGINT NOT NULL DEFAULT 0;
