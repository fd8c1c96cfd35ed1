package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
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
	p, err := s.world.find(ctx, to.Number())
	if err != nil {
		return err
	}
	var until time.Time
	if on {
		until = time.Now().Add(typingFor)
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
		WHERE world = $1 ORDER BY name, id LIMIT $2 OFFSET $3`
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
	id := parley.ContactOf(digits)
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
	c := parley.Contact{ID: parley.ContactOf(p.Number), Name: p.Name, IsBlocked: p.Blocks, OnNetwork: p.OnNetwork, LastSeenAt: p.LastSeenAt}
	if p.OnNetwork {
		c.About = about
	}
	return c
}

// Groups lists the groups of the channel's world, all of which it owns.
func (s *session) Groups(ctx context.Context, page parley.Page) ([]parley.Group, int64, error) {
	return readPage(ctx, s, groupTotal, groupPage, page, func(row scanner) (parley.Group, error) {
		var id, created, members int64
		var name string
		err := row.Scan(&id, &name, &created, &members)
		return s.world.group(id, name, created, members), err
	})
}

func (s *session) CreateGroup(ctx context.Context, name string, participants []parley.ContactID) (parley.Group, error) {
	if err := s.connected(); err != nil {
		return parley.Group{}, err
	}
	now := time.Now()
	var id, members int64
	err := s.world.write(ctx, "create group", func(tx *sqldb.Tx) (err error) {
		for _, participant := range participants {
			p, err := s.world.phone(tx, participant.Number())
			if err != nil {
				return err
			}
			if !p.OnNetwork {
				return network.Refuse(parley.NotOnNetwork, fmt.Sprintf("%s is not on the network.", participant))
			}
		}
		if id, err = createGroup(tx, s.world.id.Load(), name, participants, now); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT count(*) FROM members WHERE grp = $1`, []any{id}, &members)
	})
	if refused, ok := errors.AsType[*network.Error](err); ok {
		return parley.Group{}, refused
	}
	return s.world.group(id, name, now.UnixMilli(), members), err
}

// Participants lists the members of a group: the channel first, then the others by number.
func (s *session) Participants(ctx context.Context, id parley.GroupID) ([]parley.Participant, error) {
	if err := s.connected(); err != nil {
		return nil, err
	}
	row, ok := groupRow(id)
	if !ok {
		return nil, parley.ErrNotFound
	}
	db, world := s.world.net.db.Read(ctx), s.world.id.Load()
	var groups int
	err := db.QueryRow(`SELECT count(*) FROM groups WHERE id = $1 AND world = $2`, []any{row, world}, &groups)
	if err == nil && groups == 0 {
		err = parley.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	list, err := sqldb.Collect(db, func(row scanner) (parley.Participant, error) {
		var number, name string
		err := row.Scan(&number, &name)
		return parley.Participant{ID: parley.ContactOf(number), Name: name}, err
	}, `SELECT m.number, coalesce(p.name, '') FROM members m LEFT JOIN phones p ON p.world = $2 AND p.number = m.number
		WHERE m.grp = $1 ORDER BY m.number`, row, world)
	channel := parley.Participant{ID: parley.ContactOf(s.world.number), Name: s.name, IsAdmin: true, IsOwner: true}
	return append([]parley.Participant{channel}, list...), err
}

// createGroup stores a group with its members besides the channel itself.
func createGroup(tx *sqldb.Tx, world int64, name string, members []parley.ContactID, at time.Time) (id int64, err error) {
	id, err = tx.Insert(`INSERT INTO groups (world, name, created_at) VALUES ($1, $2, $3)`, world, name, at.UnixMilli())
	if err != nil {
		return 0, err
	}
	for _, member := range members {
		if err := tx.Do(`INSERT INTO members (grp, number) VALUES ($1, $2) ON CONFLICT DO NOTHING`, id, member.Number()); err != nil {
			return 0, err
		}
	}
	return id, nil
}

func (w *world) group(id int64, name string, created, members int64) parley.Group {
	return parley.Group{
		ID: groupID(id), Name: name, CreatedAt: time.UnixMilli(created).UTC(), Owner: parley.ContactOf(w.number), IsOwner: true,
		CanAddMember: true, ParticipantCount: int(members) + 1, // and the channel
	}
}

// The ids of groups look as on the real network.
const (
	groupPrefix = "120363"
	groupServer = "@g.us"
)

func groupID(row int64) parley.GroupID {
	return parley.GroupID(fmt.Sprintf("%s%012d%s", groupPrefix, row, groupServer))
}

func groupRow(id parley.GroupID) (int64, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(string(id), groupServer), groupPrefix)
	row, err := strconv.ParseInt(digits, 10, 64)
	return row, ok && err == nil && groupID(row) == id
}
