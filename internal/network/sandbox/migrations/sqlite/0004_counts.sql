-- How many contacts (phones with a name) and groups a world has. A page of them shows the total without counting.
ALTER TABLE worlds ADD COLUMN contact_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worlds ADD COLUMN group_count INTEGER NOT NULL DEFAULT 0;
UPDATE worlds SET
  contact_count = (SELECT count(*) FROM phones WHERE world = worlds.id AND name <> ''),
  group_count = (SELECT count(*) FROM groups WHERE world = worlds.id);

CREATE TRIGGER count_added_contact AFTER INSERT ON phones WHEN new.name <> '' BEGIN
  UPDATE worlds SET contact_count = contact_count + 1 WHERE id = new.world;
END;
CREATE TRIGGER count_renamed_contact AFTER UPDATE OF name ON phones WHEN (old.name <> '') <> (new.name <> '') BEGIN
  UPDATE worlds SET contact_count = contact_count + (new.name <> '') - (old.name <> '') WHERE id = new.world;
END;
CREATE TRIGGER count_deleted_contact AFTER DELETE ON phones WHEN old.name <> '' BEGIN
  UPDATE worlds SET contact_count = contact_count - 1 WHERE id = old.world;
END;
CREATE TRIGGER count_added_group AFTER INSERT ON groups BEGIN
  UPDATE worlds SET group_count = group_count + 1 WHERE id = new.world;
END;
CREATE TRIGGER count_deleted_group AFTER DELETE ON groups BEGIN
  UPDATE worlds SET group_count = group_count - 1 WHERE id = old.world;
END;

-- Contacts in the order of their pages.
CREATE INDEX contacts_by_name ON phones (world, name, number) WHERE name <> '';
