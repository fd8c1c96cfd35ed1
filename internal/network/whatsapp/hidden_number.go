package whatsapp

import (
	"context"
	"strings"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley"
)

// Who hides their number has a LID only. Such a contact's id is made of the LID. When the number becomes known, the gateway learns
// that the two are one contact before anything is published under the number.

func hiddenContact(lid types.JID) parley.ContactID { return parley.NewHiddenContactID(lid.User) }

// hiddenLID returns the LID that a contact id is made of; no LID begins with 0.
func hiddenLID(c parley.ContactID) (types.JID, bool) {
	if !c.IsHidden() {
		return types.EmptyJID, false
	}
	return types.NewJID(strings.TrimLeft(c.Number(), "0"), types.HiddenUserServer), true
}

// storeMet stores the LIDs of contacts whose number is hidden, so that the channel can write to them.
func (conn *connection) storeMet(ctx context.Context, contacts ...parley.ContactID) error {
	var lids []string
	for _, c := range contacts {
		if lid, hidden := hiddenLID(c); hidden {
			lids = append(lids, lid.User)
		}
	}
	if len(lids) == 0 {
		return nil
	}
	return conn.people.PutMetLIDs(ctx, lids)
}

// hiddenAddress returns the LID of a contact whose number is hidden, if the channel ever met it.
func (conn *connection) hiddenAddress(ctx context.Context, lid types.JID) (types.JID, error) {
	number, err := conn.client.Store.LIDs.GetPNForLID(ctx, lid)
	if err != nil || !number.IsEmpty() {
		return lid, err
	}
	met, err := conn.people.MetLID(ctx, lid.User)
	if err == nil && !met {
		err = errAbsent
	}
	return lid, err
}

// lidObserver reports the numbers of contacts that were hidden before they are stored.
type lidObserver struct {
	store.LIDStore
	conn *connection
}

func (p lidObserver) PutLIDMapping(ctx context.Context, lid, number types.JID) error {
	return p.PutManyLIDMappings(ctx, []store.LIDMapping{{LID: lid, PN: number}})
}

func (p lidObserver) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	for _, m := range mappings {
		number, ok := toContact(m.PN)
		if !ok || m.LID.Server != types.HiddenUserServer {
			continue
		}
		met, err := p.conn.people.MetLID(ctx, m.LID.User)
		if err == nil && met {
			err = p.conn.storeAlias(hiddenContact(m.LID), number)
		}
		if err != nil {
			return err
		}
	}
	return p.LIDStore.PutManyLIDMappings(ctx, mappings)
}
