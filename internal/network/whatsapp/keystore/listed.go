package keystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

// Listed is a contact as it is listed.
type Listed struct {
	Number   string // digits
	Name     string // may be empty
	Business bool
}

// ContactList lists the contacts of a device page by page. The contact store of every device is one.
type ContactList interface {
	// ListContacts returns a page of the contacts by name, then number, and how many there are.
	ListContacts(ctx context.Context, limit int, offset int64) ([]Listed, int64, error)
}

var _ ContactList = (*device)(nil)

func (d *device) ListContacts(ctx context.Context, limit int, offset int64) ([]Listed, int64, error) {
	db := d.s.db.Read(ctx)
	var total int64
	if err := db.QueryRow(`SELECT listed FROM devices WHERE id = $1`, []any{d.id}, &total); err != nil {
		return nil, 0, fmt.Errorf("count contacts: %w", err)
	}
	if offset >= total || limit < 1 {
		return nil, total, nil
	}
	rows, err := db.Query(pageOfContacts, d.id, limit, offset)
	if err != nil {
		return nil, 0, fmt.Errorf("list contacts: %w", err)
	}
	defer rows.Close()
	var all []Listed
	for rows.Next() {
		var c Listed
		if err := rows.Scan(&c.Number, &c.Name, &c.Business); err != nil {
			return nil, 0, fmt.Errorf("list contacts: %w", err)
		}
		all = append(all, c)
	}
	return all, total, wrapped("list contacts", rows.Err())
}

// pageOfContacts reads the index listed_name alone.
const pageOfContacts = `SELECT number, name, business FROM listed WHERE device = $1 ORDER BY name, number LIMIT $2 OFFSET $3`

const (
	// relist replaces the row of a number by what is known of it now: the owner's name for it, then a business's, then its own.
	// What is noted under the number goes before what is noted under the LID.
	relist = `INSERT INTO listed (device, number, name, business)
		SELECT $1, $2, coalesce(max(CASE WHEN jid = $3 THEN name END), max(name), ''), max(business) FROM (
			SELECT jid, coalesce(nullif(full_name, ''), nullif(first_name, ''), nullif(business_name, ''), nullif(push_name, '')) AS name,
				business_name <> '' AS business
			FROM contacts WHERE device = $1 AND jid IN ($3, (SELECT lid || '@lid' FROM people WHERE device = $1 AND number = $2)))
		WHERE NOT EXISTS (SELECT 1 FROM devices WHERE id = $1 AND (jid LIKE $2 || ':%' OR jid LIKE $2 || '@%'))
		HAVING count(*) > 0`
	unlist = `DELETE FROM listed WHERE device = $1 AND number = $2`
)

// list brings the list up to date with what is known of a number.
func (d *device) list(tx *sqldb.Tx, number string) error {
	jid := types.NewJID(number, types.DefaultUserServer)
	if number == "" || jid.IsBot() || jid == types.PSAJID {
		return nil
	}
	if _, err := tx.Exec(unlist, d.id, number); err != nil {
		return err
	}
	_, err := tx.Exec(relist, d.id, number, jid.String())
	return err
}

// listJID does so for an address. A LID whose number is not known is not listed.
func (d *device) listJID(tx *sqldb.Tx, jid types.JID) error {
	switch jid.Server {
	case types.DefaultUserServer:
		return d.list(tx, jid.User)
	case types.HiddenUserServer:
		var number string
		err := tx.QueryRow(`SELECT number FROM people WHERE device = $1 AND lid = $2`, []any{d.id, jid.User}, &number)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return d.list(tx, number)
	}
	return nil
}

// putContact changes the row of a contact, and the list with it.
func (d *device) putContact(ctx context.Context, what string, user types.JID, query string, args ...any) error {
	return d.write(ctx, what, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(query, args...); err != nil {
			return err
		}
		return d.listJID(tx, user)
	})
}
