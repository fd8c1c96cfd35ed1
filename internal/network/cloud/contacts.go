package cloud

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

// Contacts lists those who wrote: Meta has no list.
func (s *session) Contacts(ctx context.Context, page parley.Page) ([]parley.Contact, int64, error) {
	known, total, err := s.d.config.Store.RemoteContacts(ctx, s.channel.Code, page)
	all := make([]parley.Contact, len(known))
	for i, c := range known {
		all[i] = toContact(c)
	}
	return all, total, err
}

func toContact(c store.RemoteContact) parley.Contact {
	return parley.Contact{ID: c.Contact, Name: cmp.Or(c.Name, c.Username), Username: c.Username, LastSeenAt: c.InboundAt,
		OnNetwork: !c.InboundAt.IsZero()}
}

func (s *session) Contact(ctx context.Context, id parley.ContactID) (parley.Contact, error) {
	c, err := s.d.config.Store.RemoteContact(ctx, s.channel.Code, id)
	if errors.Is(err, parley.ErrNotFound) {
		return parley.Contact{ID: id}, nil
	}
	return toContact(c), err
}

// absentFor is how long a contact that could not be reached counts as not on the network.
const absentFor = 30 * 24 * time.Hour

// CheckNumber reports what messages have shown: Meta cannot be asked.
func (s *session) CheckNumber(ctx context.Context, number string) (parley.ContactID, bool, error) {
	id := parley.NewContactID(strings.Map(onlyDigits, number))
	if !id.CanExist() {
		return id, false, nil
	}
	c, err := s.d.config.Store.RemoteContact(ctx, s.channel.Code, id)
	switch {
	case err != nil && !errors.Is(err, parley.ErrNotFound):
		return id, false, err
	case time.Since(c.AbsentAt) < absentFor:
		return id, false, nil
	case !c.InboundAt.IsZero():
		return id, true, nil
	}
	if known, err := s.d.config.Store.KnowsContact(ctx, s.channel.Code, id); known || err != nil {
		return id, known, parley.IgnoreNotFound(err)
	}
	return id, false, parley.Errorf(parley.NotSupported,
		"%s cannot tell whether a number is on WhatsApp before a message was exchanged with it.", Info.Title)
}
