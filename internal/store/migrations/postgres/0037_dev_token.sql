-- 1: parley dev wrote the token to dev.env. Only a development server accepts it.
ALTER TABLE token ADD COLUMN dev bigint NOT NULL DEFAULT 0;
