package keystore

import (
	"context"
	"errors"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

// PutPushName stores a contact's own name. It returns whether it changed, and the previous name.
func (d *device) PutPushName(ctx context.Context, user types.JID, name string) (bool, string, error) {
	is, err := d.GetContact(ctx, user)
	return d.putName(ctx, user, "push_name", is.PushName, name, err)
}

// PutBusinessName is PutPushName for the name of a business.
func (d *device) PutBusinessName(ctx context.Context, user types.JID, name string) (bool, string, error) {
	is, err := d.GetContact(ctx, user)
	return d.putName(ctx, user, "business_name", is.BusinessName, name, err)
}

func (d *device) putName(ctx context.Context, user types.JID, column, is, name string, err error) (bool, string, error) {
	if err != nil || is == name {
		return false, "", err
	}
	err = d.write(ctx, "store a name", func(tx *sqldb.Tx) error { return d.putColumn(tx, user, column, name) })
	return err == nil, is, err
}

// putColumn sets a column of a contact, and changes the list with it.
func (d *device) putColumn(tx *sqldb.Tx, user types.JID, column, value string) error {
	return errors.Join(tx.Do(`INSERT INTO contacts (device, jid, `+column+`) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET `+column+` = excluded.`+column, d.id, user.String(), value), d.relistJID(tx, user))
}

const putFullName = `INSERT INTO contacts (device, jid, first_name, full_name) VALUES ($1, $2, $3, $4)
	ON CONFLICT (device, jid) DO UPDATE SET first_name = excluded.first_name, full_name = excluded.full_name`

// PutContactName stores the owner's name for a contact. The interface names the full name first, but whatsmeow passes
// the first name first.
func (d *device) PutContactName(ctx context.Context, user types.JID, first, full string) error {
	return d.PutAllContactNames(ctx, []store.ContactEntry{{JID: user, FirstName: first, FullName: full}})
}

// PutAllContactNames does so for many.
func (d *device) PutAllContactNames(ctx context.Context, contacts []store.ContactEntry) error {
	return d.write(ctx, "store contacts", func(tx *sqldb.Tx) error {
		return sqldb.Each(contacts, func(c store.ContactEntry) error {
			return errors.Join(tx.Do(putFullName, d.id, c.JID.String(), c.FirstName, c.FullName), d.relistJID(tx, c.JID))
		})
	})
}

// PutManyRedactedPhones stores the visible part of hidden numbers.
func (d *device) PutManyRedactedPhones(ctx context.Context, entries []store.RedactedPhoneEntry) error {
	return d.write(ctx, "store contacts", func(tx *sqldb.Tx) error {
		return sqldb.Each(entries, func(e store.RedactedPhoneEntry) error {
			return d.putColumn(tx, e.JID, "redacted_phone", e.RedactedPhone)
		})
	})
}

func (d *device) GetContact(ctx context.Context, user types.JID) (types.ContactInfo, error) {
	var c types.ContactInfo
	var err error
	c.Found, err = readRow(d.s.db.Read(ctx), "read a contact", `SELECT first_name, full_name, push_name, business_name, redacted_phone
		FROM contacts WHERE device = $1 AND jid = $2`, []any{d.id, user.String()},
		&c.FirstName, &c.FullName, &c.PushName, &c.BusinessName, &c.RedactedPhone)
	return c, err
}

// GetAllContacts is not used: whatsmeow would read them to send a status.
func (d *device) GetAllContacts(context.Context) (map[types.JID]types.ContactInfo, error) {
	return nil, errUnused
}

type ListedContact struct {
	Number   string // digits
	Name     string // may be empty
	Business bool
}

// ListContacts returns a page of the contacts of a device by name, then number, and how many there are.
func (s *Store) ListContacts(ctx context.Context, of types.JID, limit int, offset int64) ([]ListedContact, int64, error) {
	db := s.db.Read(ctx)
	var device, total int64
	_, err := readRow(db, "count contacts", `SELECT id, listed FROM devices WHERE jid = $1`, []any{of.String()}, &device, &total)
	if err != nil || offset >= total || limit < 1 {
		return nil, total, err
	}
	all, err := sqldb.Collect(db, func(row sqldb.Scanner) (c ListedContact, err error) {
		err = row.Scan(&c.Number, &c.Name, &c.Business)
		return c, err
	}, pageOfContacts, device, limit, offset)
	return all, total, wrapError("list contacts", err)
}

// pageOfContacts reads the index listed_name alone.
const pageOfContacts = `SELECT number, name, business FROM listed WHERE device = $1 ORDER BY name, number LIMIT $2 OFFSET $3`

const (
	// relist replaces the row of a number. It prefers the owner's name, then the business name, then the contact's own.
	// A row under the number wins over one under the LID.
	relist = `INSERT INTO listed (device, number, name, business)
		SELECT $1, $2, coalesce(max(CASE WHEN jid = $3 THEN name END), max(name), ''), max(business) FROM (
			SELECT jid, coalesce(nullif(full_name, ''), nullif(first_name, ''), nullif(business_name, ''), nullif(push_name, '')) AS name,
				CASE WHEN business_name <> '' THEN 1 ELSE 0 END AS business
			FROM contacts WHERE device = $1 AND jid IN ($3, (SELECT lid || '@lid' FROM people WHERE device = $1 AND number = $2))) AS known
		WHERE NOT EXISTS (SELECT 1 FROM devices WHERE id = $1 AND (jid LIKE $2 || ':%' OR jid LIKE $2 || '@%'))
		HAVING count(*) > 0`
	unlist = `DELETE FROM listed WHERE device = $1 AND number = $2`
)

func (d *device) relistNumber(tx *sqldb.Tx, number string) error {
	jid := types.NewJID(number, types.DefaultUserServer)
	if number == "" || jid.IsBot() || jid == types.PSAJID {
		return nil
	}
	return errors.Join(tx.Do(unlist, d.id, number), tx.Do(relist, d.id, number, jid.String()))
}

// relistJID does so for an address. A LID whose number is not known is not listed.
func (d *device) relistJID(tx *sqldb.Tx, jid types.JID) error {
	switch jid.Server {
	case types.DefaultUserServer:
		return d.relistNumber(tx, jid.User)
	case types.HiddenUserServer:
		var number string
		if _, err := readRow(tx.Conn, "read a number", numberOfLID, []any{d.id, jid.User}, &number); err != nil {
			return err
		}
		return d.relistNumber(tx, number)
	}
	return nil
}
