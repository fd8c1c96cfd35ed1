package keystore

import (
	"context"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

// Each device has its own mappings. A phone can send its device any mapping: what one account received must not decide
// where another one writes to, nor who a sender is.
var _ store.LIDStore = (*device)(nil)

// GetLIDForPN finds the LID of a number, with the same device; empty: it is not known.
func (d *device) GetLIDForPN(ctx context.Context, number types.JID) (types.JID, error) {
	if number.Server != types.DefaultUserServer {
		return types.EmptyJID, fmt.Errorf("find a LID: %s is no number", number.Server)
	}
	return d.counterpart(ctx, number, lidKind, types.HiddenUserServer)
}

// GetPNForLID finds the number of a LID, with the same device; empty: it is not known.
func (d *device) GetPNForLID(ctx context.Context, lid types.JID) (types.JID, error) {
	if lid.Server != types.HiddenUserServer {
		return types.EmptyJID, fmt.Errorf("find a number: %s is no LID", lid.Server)
	}
	return d.counterpart(ctx, lid, numberKind, types.DefaultUserServer)
}

const (
	lidOfNumber = `SELECT lid FROM people WHERE device = $1 AND number = $2`
	numberOfLID = `SELECT number FROM people WHERE device = $1 AND lid = $2`
)

func (d *device) counterpart(ctx context.Context, of types.JID, k kind, server string) (types.JID, error) {
	at := key{d.id, k, of.User}
	is, known := d.s.cache.get(at)
	user := is.value
	if !known {
		mark := d.s.cache.version(at)
		query := map[kind]string{lidKind: lidOfNumber, numberKind: numberOfLID}[k]
		if _, err := readRow(d.s.db.Read(ctx), "find a contact's other address", query, []any{d.id, of.User}, &user); err != nil {
			return types.EmptyJID, err
		}
		d.fill(at, user, mark)
	}
	if len(user) == 0 {
		return types.EmptyJID, nil
	}
	return types.JID{User: string(user), Device: of.Device, Server: server}, nil
}

// otherAddress returns the LID of a number or the number of a LID; empty: unknown.
func (d *device) otherAddress(ctx context.Context, jid types.JID) (types.JID, error) {
	switch jid.Server {
	case types.DefaultUserServer:
		return d.GetLIDForPN(ctx, jid)
	case types.HiddenUserServer:
		return d.GetPNForLID(ctx, jid)
	}
	return types.EmptyJID, nil
}

// GetManyLIDsForPNs finds the LIDs of numbers. Those that are not known are left out.
func (d *device) GetManyLIDsForPNs(ctx context.Context, numbers []types.JID) (map[types.JID]types.JID, error) {
	all := make(map[types.JID]types.JID, len(numbers))
	for _, number := range numbers {
		if number.Server != types.DefaultUserServer {
			continue
		}
		lid, err := d.GetLIDForPN(ctx, number)
		if err != nil {
			return nil, err
		}
		if !lid.IsEmpty() {
			all[number] = lid
		}
	}
	return all, nil
}

func (d *device) PutLIDMapping(ctx context.Context, lid, number types.JID) error {
	if lid.Server != types.HiddenUserServer || number.Server != types.DefaultUserServer {
		return fmt.Errorf("store a person's addresses: %s and %s are not a LID and a number", lid.Server, number.Server)
	}
	return d.PutManyLIDMappings(ctx, []store.LIDMapping{{LID: lid, PN: number}})
}

// PutManyLIDMappings skips invalid pairs.
func (d *device) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	var fresh []store.LIDMapping
	for _, m := range mappings {
		if m.LID.Server != types.HiddenUserServer || m.PN.Server != types.DefaultUserServer {
			continue
		}
		is, err := d.GetLIDForPN(ctx, m.PN)
		if err != nil {
			return err
		}
		if is.User != m.LID.User {
			fresh = append(fresh, m)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return d.commit(ctx, "store contacts' addresses", func(tx *sqldb.Tx) error {
		return sqldb.Each(fresh, func(m store.LIDMapping) error { return d.putMapping(tx, m.LID.User, m.PN.User) })
	})
}

// putMapping stores one pair and removes older pairs of either address.
func (d *device) putMapping(tx *sqldb.Tx, lid, number string) error {
	var oldNumber, oldLID string
	_, err := readRow(tx.Conn, "read a number", numberOfLID, []any{d.id, lid}, &oldNumber)
	if err == nil {
		_, err = readRow(tx.Conn, "read a LID", lidOfNumber, []any{d.id, number}, &oldLID)
	}
	if err != nil {
		return err
	}
	tx.OnCommit(func() {
		if oldNumber != "" && oldNumber != number {
			d.s.cache.set(key{d.id, lidKind, oldNumber}, entry{})
		}
		if oldLID != "" && oldLID != lid {
			d.s.cache.set(key{d.id, numberKind, oldLID}, entry{})
		}
		d.s.cache.set(key{d.id, lidKind, number}, entry{value: []byte(lid)})
		d.s.cache.set(key{d.id, numberKind, lid}, entry{value: []byte(number)})
	})
	return errors.Join(tx.Do(`DELETE FROM people WHERE device = $1 AND number = $2 AND lid <> $3`, d.id, number, lid),
		tx.Do(`INSERT INTO people (device, lid, number) VALUES ($1, $2, $3)
			ON CONFLICT (device, lid) DO UPDATE SET number = excluded.number`, d.id, lid, number),
		d.relistNumber(tx, oldNumber), d.relistNumber(tx, number))
}
