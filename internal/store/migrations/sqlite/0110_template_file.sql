-- Templates can carry a file too.
DROP INDEX message_file;
CREATE INDEX message_file ON message (json_extract(data, '$.media.key')) WHERE kind IN ('image', 'video', 'file', 'voice', 'sticker', 'template');
