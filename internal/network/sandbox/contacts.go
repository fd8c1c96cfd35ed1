package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

const (
	typingFor = 10 * time.Second // then it fades, as on the real network
	about     = "Lives in the sandbox."
)

func (s *session) Typing(ctx context.Context, to parley.ContactID, on bool) error {
	if err := s.connected(); err != nil {
		return err
	}
	var until time.Time
	if on {
		until = time.Now().Add(typingFor)
	}
	if group := to.Group(); group != "" {
		return s.typingInGroup(ctx, group, until)
	}
	p, err := s.world.find(ctx, to.Number())
	if err != nil {
		return err
	}
	s.world.setTyping(p.id, until)
	return nil
}

// The totals and pages of contacts and groups. None of them may read all rows of a world.
const (
	contactTotal = `SELECT contact_count FROM worlds WHERE id = $1`
	groupTotal   = `SELECT group_count FROM worlds WHERE id = $1`
	contactPage  = `SELECT ` + phoneColumns + ` FROM phones WHERE world = $1 AND name <> '' ORDER BY name, number LIMIT $2 OFFSET $3`
	groupPage    = `SELECT id, name, created_at, (SELECT count(*) FROM members WHERE grp = groups.id) FROM groups
		WHERE world = $1 AND gone = 0 ORDER BY name, id LIMIT $2 OFFSET $3`
)

func readPage[T any](ctx context.Context, s *session, total, query string, page parley.Page, scan func(scanner) (T, error)) (
	list []T, count int64, err error) {
	if err := s.connected(); err != nil {
		return nil, 0, err
	}
	db, world := s.world.net.db.Read(ctx), s.world.id.Load()
	if err = db.QueryRow(total, []any{world}, &count); err == nil {
		list, err = sqldb.Collect(db, scan, query, world, page.Limit, page.Offset)
	}
	return list, count, err
}

// Contacts lists the phones that have a name.
func (s *session) Contacts(ctx context.Context, page parley.Page) ([]parley.Contact, int64, error) {
	return readPage(ctx, s, contactTotal, contactPage, page, func(row scanner) (parley.Contact, error) {
		p, err := s.world.scanView(row)
		c := p.contact()
		c.About, c.OnNetwork = "", false // only in the details of one contact
		return c, err
	})
}

func (s *session) Contact(ctx context.Context, id parley.ContactID) (parley.Contact, error) {
	p, err := s.lookUp(ctx, id)
	if err != nil {
		return parley.Contact{}, err
	}
	return p.contact(), nil
}

func (s *session) CheckNumber(ctx context.Context, number string) (parley.ContactID, bool, error) {
	digits, err := parley.ParseNumber(number)
	if err != nil {
		return "", false, s.connected() // not a number
	}
	id := parley.NewContactID(digits)
	p, err := s.lookUp(ctx, id)
	return id, p.OnNetwork, err
}

// lookUp returns the phone of a number without creating it.
func (s *session) lookUp(ctx context.Context, id parley.ContactID) (Phone, error) {
	if err := s.connected(); err != nil {
		return Phone{}, err
	}
	p, err := s.world.lookUp(ctx, id.Number())
	if errors.Is(err, sql.ErrNoRows) {
		p, err = &phone{Phone: newPhone(id.Number())}, nil
	}
	if err != nil {
		return Phone{}, fmt.Errorf("look up phone: %w", err)
	}
	return s.world.view(p), nil
}

func (p Phone) contact() parley.Contact {
	c := parley.Contact{ID: parley.NewContactID(p.Number), Name: p.Name, IsBlocked: p.Blocks, OnNetwork: p.OnNetwork, LastSeenAt: p.LastSeenAt}
	if p.OnNetwork {
		c.About = about
	}
	return c
}
