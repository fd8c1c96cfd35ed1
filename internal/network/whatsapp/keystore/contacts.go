package keystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

// PutPushName stores a contact's own name. It returns whether it changed, and the previous name.
func (d *device) PutPushName(ctx context.Context, user types.JID, name string) (bool, string, error) {
	is, err := d.GetContact(ctx, user)
	if err != nil || is.PushName == name {
		return false, "", err
	}
	err = d.putContact(ctx, "store a name", user, `INSERT INTO contacts (device, jid, push_name) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET push_name = excluded.push_name`, d.id, user.String(), name)
	return err == nil, is.PushName, err
}

// PutBusinessName is PutPushName for the name of a business.
func (d *device) PutBusinessName(ctx context.Context, user types.JID, name string) (bool, string, error) {
	is, err := d.GetContact(ctx, user)
	if err != nil || is.BusinessName == name {
		return false, "", err
	}
	err = d.putContact(ctx, "store a name", user, `INSERT INTO contacts (device, jid, business_name) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET business_name = excluded.business_name`, d.id, user.String(), name)
	return err == nil, is.BusinessName, err
}

const putName = `INSERT INTO contacts (device, jid, first_name, full_name) VALUES ($1, $2, $3, $4)
	ON CONFLICT (device, jid) DO UPDATE SET first_name = excluded.first_name, full_name = excluded.full_name`

// PutContactName stores the owner's name for a contact. The interface names the full name first, but whatsmeow passes
// the first name first.
func (d *device) PutContactName(ctx context.Context, user types.JID, first, full string) error {
	return d.putContact(ctx, "store a contact", user, putName, d.id, user.String(), first, full)
}

// PutAllContactNames does so for many.
func (d *device) PutAllContactNames(ctx context.Context, contacts []store.ContactEntry) error {
	return d.write(ctx, "store contacts", func(tx *sqldb.Tx) error {
		for _, c := range contacts {
			if err := tx.Do(putName, d.id, c.JID.String(), c.FirstName, c.FullName); err != nil {
				return err
			}
			if err := d.relistJID(tx, c.JID); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutManyRedactedPhones stores the visible part of hidden numbers.
func (d *device) PutManyRedactedPhones(ctx context.Context, entries []store.RedactedPhoneEntry) error {
	return d.write(ctx, "store contacts", func(tx *sqldb.Tx) error {
		for _, e := range entries {
			err := tx.Do(`INSERT INTO contacts (device, jid, redacted_phone) VALUES ($1, $2, $3)
				ON CONFLICT (device, jid) DO UPDATE SET redacted_phone = excluded.redacted_phone`, d.id, e.JID.String(), e.RedactedPhone)
			if err == nil {
				err = d.relistJID(tx, e.JID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// GetContact reads a contact.
func (d *device) GetContact(ctx context.Context, user types.JID) (types.ContactInfo, error) {
	var c types.ContactInfo
	err := d.s.db.Read(ctx).QueryRow(`SELECT first_name, full_name, push_name, business_name, redacted_phone FROM contacts
		WHERE device = $1 AND jid = $2`, []any{d.id, user.String()},
		&c.FirstName, &c.FullName, &c.PushName, &c.BusinessName, &c.RedactedPhone)
	if errors.Is(err, sql.ErrNoRows) {
		return types.ContactInfo{}, nil
	}
	c.Found = err == nil
	return c, wrapError("read a contact", err)
}

// GetAllContacts lists the contacts.
func (d *device) GetAllContacts(ctx context.Context) (map[types.JID]types.ContactInfo, error) {
	rows, err := d.s.db.Read(ctx).Query(`SELECT jid, first_name, full_name, push_name, business_name, redacted_phone FROM contacts
		WHERE device = $1`, d.id)
	if err != nil {
		return nil, fmt.Errorf("read contacts: %w", err)
	}
	defer rows.Close()
	all := map[types.JID]types.ContactInfo{}
	for rows.Next() {
		var text string
		c := types.ContactInfo{Found: true}
		if err := rows.Scan(&text, &c.FirstName, &c.FullName, &c.PushName, &c.BusinessName, &c.RedactedPhone); err != nil {
			return nil, fmt.Errorf("read contacts: %w", err)
		}
		jid, err := types.ParseJID(text)
		if err != nil {
			return nil, fmt.Errorf("read contacts: %w", err)
		}
		all[jid] = c
	}
	return all, wrapError("read contacts", rows.Err())
}

const mutedForever = -1 // in muted_until

func (d *device) PutMutedUntil(ctx context.Context, chat types.JID, until time.Time) error {
	var at int64
	switch {
	case until.Equal(store.MutedForever):
		at = mutedForever
	case !until.IsZero():
		at = until.Unix()
	}
	return d.putChatSetting(ctx, chat, "muted_until", at)
}

func (d *device) PutPinned(ctx context.Context, chat types.JID, pinned bool) error {
	return d.putChatSetting(ctx, chat, "pinned", pinned)
}

func (d *device) PutArchived(ctx context.Context, chat types.JID, archived bool) error {
	return d.putChatSetting(ctx, chat, "archived", archived)
}

// putChatSetting sets a column of the table chats.
func (d *device) putChatSetting(ctx context.Context, chat types.JID, column string, value any) error {
	return d.exec(ctx, "store a chat's setting", `INSERT INTO chats (device, jid, `+column+`) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET `+column+` = excluded.`+column, d.id, chat.String(), value)
}

// GetChatSettings reads a chat's settings.
func (d *device) GetChatSettings(ctx context.Context, chat types.JID) (types.LocalChatSettings, error) {
	var c types.LocalChatSettings
	var until int64
	err := d.s.db.Read(ctx).QueryRow(`SELECT muted_until, pinned, archived FROM chats WHERE device = $1 AND jid = $2`,
		[]any{d.id, chat.String()},
		&until, &c.Pinned, &c.Archived)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read a chat's settings: %w", err)
	}
	c.Found = true
	switch {
	case until == mutedForever:
		c.MutedUntil = store.MutedForever
	case until > 0:
		c.MutedUntil = time.Unix(until, 0)
	}
	return c, nil
}

// ListedContact is a contact as it is listed.
type ListedContact struct {
	Number   string // digits
	Name     string // may be empty
	Business bool
}

// ContactList lists the contacts of a device page by page. The contact store of every device is one.
type ContactList interface {
	// ListContacts returns a page of the contacts by name, then number, and how many there are.
	ListContacts(ctx context.Context, limit int, offset int64) ([]ListedContact, int64, error)
}

var _ ContactList = (*device)(nil)

func (d *device) ListContacts(ctx context.Context, limit int, offset int64) ([]ListedContact, int64, error) {
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
	var all []ListedContact
	for rows.Next() {
		var c ListedContact
		if err := rows.Scan(&c.Number, &c.Name, &c.Business); err != nil {
			return nil, 0, fmt.Errorf("list contacts: %w", err)
		}
		all = append(all, c)
	}
	return all, total, wrapError("list contacts", rows.Err())
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

// relistNumber updates the list for a number.
func (d *device) relistNumber(tx *sqldb.Tx, number string) error {
	jid := types.NewJID(number, types.DefaultUserServer)
	if number == "" || jid.IsBot() || jid == types.PSAJID {
		return nil
	}
	if err := tx.Do(unlist, d.id, number); err != nil {
		return err
	}
	return tx.Do(relist, d.id, number, jid.String())
}

// relistJID does so for an address. A LID whose number is not known is not listed.
func (d *device) relistJID(tx *sqldb.Tx, jid types.JID) error {
	switch jid.Server {
	case types.DefaultUserServer:
		return d.relistNumber(tx, jid.User)
	case types.HiddenUserServer:
		var number string
		err := tx.QueryRow(`SELECT number FROM people WHERE device = $1 AND lid = $2`, []any{d.id, jid.User}, &number)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return d.relistNumber(tx, number)
	}
	return nil
}

// putContact changes the row of a contact, and the list with it.
func (d *device) putContact(ctx context.Context, what string, user types.JID, query string, args ...any) error {
	return d.write(ctx, what, func(tx *sqldb.Tx) error {
		if err := tx.Do(query, args...); err != nil {
			return err
		}
		return d.relistJID(tx, user)
	})
}
