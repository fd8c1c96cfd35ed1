-- The contacts of each device as they are listed: one row for each number, whichever address it is known by, in the order of
-- the list. It follows the tables contacts and people.
CREATE TABLE listed (
	device   INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
	number   TEXT    NOT NULL,
	name     TEXT    NOT NULL,
	business INTEGER NOT NULL,
	PRIMARY KEY (device, number)
) WITHOUT ROWID;

CREATE INDEX listed_name ON listed (device, name, number, business);

-- How many rows a device has there.
ALTER TABLE devices ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER listed_added AFTER INSERT ON listed BEGIN
	UPDATE devices SET listed = listed + 1 WHERE id = NEW.device;
END;

CREATE TRIGGER listed_removed AFTER DELETE ON listed BEGIN
	UPDATE devices SET listed = listed - 1 WHERE id = OLD.device;
END;

INSERT INTO listed (device, number, name, business)
	SELECT device, number, coalesce(max(CASE WHEN by_number THEN name END), max(name), ''), max(business) FROM (
		SELECT device, substr(jid, 1, instr(jid, '@') - 1) AS number, 1 AS by_number,
			coalesce(nullif(full_name, ''), nullif(first_name, ''), nullif(business_name, ''), nullif(push_name, '')) AS name, business_name <> '' AS business
			FROM contacts WHERE jid LIKE '%@s.whatsapp.net'
		UNION ALL
		SELECT c.device, p.number, 0,
			coalesce(nullif(full_name, ''), nullif(first_name, ''), nullif(business_name, ''), nullif(push_name, '')), business_name <> ''
			FROM contacts c JOIN people p ON p.device = c.device AND c.jid = p.lid || '@lid')
	WHERE number <> '0' AND number NOT GLOB '1313555[0-9][0-9][0-9][0-9]' AND number NOT GLOB '131655500[0-9][0-9]'
		AND NOT EXISTS (SELECT 1 FROM devices d WHERE d.id = device AND (d.jid LIKE number || ':%' OR d.jid LIKE number || '@%'))
	GROUP BY device, number;
