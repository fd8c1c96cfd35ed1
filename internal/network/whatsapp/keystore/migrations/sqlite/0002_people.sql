-- The two addresses of a person, as each device learned them. A device keeps those of the people it has sessions with;
-- the others it learns again.
CREATE TABLE people_of_device (
	device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
	lid    TEXT NOT NULL,
	number TEXT NOT NULL,
	PRIMARY KEY (device, lid),
	UNIQUE (device, number)
) WITHOUT ROWID;

INSERT INTO people_of_device (device, lid, number)
	SELECT DISTINCT s.device, p.lid, p.number FROM states s JOIN people p ON p.lid = substr(s.name, 1, instr(s.name, '_') - 1)
	WHERE s.kind = 1;

DROP TABLE people;
ALTER TABLE people_of_device RENAME TO people;
