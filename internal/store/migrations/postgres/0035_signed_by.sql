-- The id of the key that signed a token. No other key may verify it.
ALTER TABLE token ADD COLUMN signed_by TEXT COLLATE "C" NOT NULL DEFAULT '';
UPDATE token SET signed_by = coalesce((SELECT id FROM signing_key WHERE signing_key.created_at <= token.created_at
  ORDER BY signing_key.created_at DESC, signing_key.seq DESC LIMIT 1), '');
