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

// PutPushName keeps what a contact calls itself. It reports whether that is new, and what it was before.
func (d *device) PutPushName(ctx context.Context, user types.JID, name string) (bool, string, error) {
	is, err := d.GetContact(ctx, user)
	if err != nil || is.PushName == name {
		return false, "", err
	}
	err = d.putContact(ctx, "keep a name", user, `INSERT INTO contacts (device, jid, push_name) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET push_name = excluded.push_name`, d.id, user.String(), name)
	return err == nil, is.PushName, err
}

// PutBusinessName keeps what a business calls itself, as PutPushName does.
func (d *device) PutBusinessName(ctx context.Context, user types.JID, name string) (bool, string, error) {
	is, err := d.GetContact(ctx, user)
	if err != nil || is.BusinessName == name {
		return false, "", err
	}
	err = d.putContact(ctx, "keep a name", user, `INSERT INTO contacts (device, jid, business_name) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET business_name = excluded.business_name`, d.id, user.String(), name)
	return err == nil, is.BusinessName, err
}

const putName = `INSERT INTO contacts (device, jid, first_name, full_name) VALUES ($1, $2, $3, $4)
	ON CONFLICT (device, jid) DO UPDATE SET first_name = excluded.first_name, full_name = excluded.full_name`

// PutContactName keeps what the account's owner calls a contact. The interface names the full name first, but
// whatsmeow gives the first name first.
func (d *device) PutContactName(ctx context.Context, user types.JID, first, full string) error {
	return d.putContact(ctx, "keep a contact", user, putName, d.id, user.String(), first, full)
}

// PutAllContactNames does so for many.
func (d *device) PutAllContactNames(ctx context.Context, contacts []store.ContactEntry) error {
	return d.write(ctx, "keep contacts", func(tx *sqldb.Tx) error {
		for _, c := range contacts {
			if _, err := tx.Exec(putName, d.id, c.JID.String(), c.FirstName, c.FullName); err != nil {
				return err
			}
			if err := d.listJID(tx, c.JID); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutManyRedactedPhones keeps what may be shown of the numbers of contacts who hide theirs.
func (d *device) PutManyRedactedPhones(ctx context.Context, entries []store.RedactedPhoneEntry) error {
	return d.write(ctx, "keep contacts", func(tx *sqldb.Tx) error {
		for _, e := range entries {
			_, err := tx.Exec(`INSERT INTO contacts (device, jid, redacted_phone) VALUES ($1, $2, $3)
				ON CONFLICT (device, jid) DO UPDATE SET redacted_phone = excluded.redacted_phone`, d.id, e.JID.String(), e.RedactedPhone)
			if err == nil {
				err = d.listJID(tx, e.JID)
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
	err := d.s.db.Read(ctx).QueryRow(`SELECT first_name, full_name, push_name, business_name, redacted_phone FROM contacts WHERE device = $1 AND jid = $2`, []any{d.id, user.String()},
		&c.FirstName, &c.FullName, &c.PushName, &c.BusinessName, &c.RedactedPhone)
	if errors.Is(err, sql.ErrNoRows) {
		return types.ContactInfo{}, nil
	}
	c.Found = err == nil
	return c, wrapped("read a contact", err)
}

// GetAllContacts lists the contacts.
func (d *device) GetAllContacts(ctx context.Context) (map[types.JID]types.ContactInfo, error) {
	rows, err := d.s.db.Read(ctx).Query(`SELECT jid, first_name, full_name, push_name, business_name, redacted_phone FROM contacts WHERE device = $1`, d.id)
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
	return all, wrapped("read contacts", rows.Err())
}

const forEver = -1 // in place of the time until which a chat is muted

// PutMutedUntil keeps until when a chat is muted.
func (d *device) PutMutedUntil(ctx context.Context, chat types.JID, until time.Time) error {
	var at int64
	switch {
	case until.Equal(store.MutedForever):
		at = forEver
	case !until.IsZero():
		at = until.Unix()
	}
	return d.exec(ctx, "keep a chat's setting", `INSERT INTO chats (device, jid, muted_until) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET muted_until = excluded.muted_until`, d.id, chat.String(), at)
}

// PutPinned keeps whether a chat is pinned.
func (d *device) PutPinned(ctx context.Context, chat types.JID, pinned bool) error {
	return d.exec(ctx, "keep a chat's setting", `INSERT INTO chats (device, jid, pinned) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET pinned = excluded.pinned`, d.id, chat.String(), pinned)
}

// PutArchived keeps whether a chat is archived.
func (d *device) PutArchived(ctx context.Context, chat types.JID, archived bool) error {
	return d.exec(ctx, "keep a chat's setting", `INSERT INTO chats (device, jid, archived) VALUES ($1, $2, $3)
		ON CONFLICT (device, jid) DO UPDATE SET archived = excluded.archived`, d.id, chat.String(), archived)
}

// GetChatSettings reads a chat's settings.
func (d *device) GetChatSettings(ctx context.Context, chat types.JID) (types.LocalChatSettings, error) {
	var c types.LocalChatSettings
	var until int64
	err := d.s.db.Read(ctx).QueryRow(`SELECT muted_until, pinned, archived FROM chats WHERE device = $1 AND jid = $2`, []any{d.id, chat.String()},
		&until, &c.Pinned, &c.Archived)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read a chat's settings: %w", err)
	}
	c.Found = true
	switch {
	case until == forEver:
		c.MutedUntil = store.MutedForever
	case until > 0:
		c.MutedUntil = time.Unix(until, 0)
	}
	return c, nil
}
