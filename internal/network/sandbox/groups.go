package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// Groups lists the groups of the channel's world, all of which it owns.
func (s *session) Groups(ctx context.Context, page parley.Page) ([]parley.Group, int64, error) {
	return readPage(ctx, s, groupTotal, groupPage, page, func(row scanner) (parley.Group, error) {
		var id, created, members int64
		var g parley.Group
		err := row.Scan(&id, &g.Name, &created, &g.Description, &g.Restricted, &g.OnlyAdminsSend, &g.JoinApproval, &members, &g.Timer)
		full := s.world.group(id, g.Name, created, members)
		full.Description, full.Restricted, full.OnlyAdminsSend, full.JoinApproval = g.Description, g.Restricted, g.OnlyAdminsSend, g.JoinApproval
		full.Timer = g.Timer
		return full, err
	})
}

func (s *session) CreateGroup(ctx context.Context, name string, participants []parley.ContactID) (parley.Group, error) {
	if err := s.connected(); err != nil {
		return parley.Group{}, err
	}
	now := time.Now()
	var id, members int64
	err := s.world.write(ctx, "create group", func(tx *sqldb.Tx) (err error) {
		numbers := make([]parley.ContactID, len(participants))
		for i, participant := range participants {
			p, err := s.world.phone(tx, participant.Number())
			if err != nil {
				return err
			}
			if !p.OnNetwork {
				return network.Refuse(parley.NotOnNetwork, fmt.Sprintf("%s is not on the network.", participant))
			}
			numbers[i] = p.contactID()
		}
		if id, err = createGroup(tx, s.world.id.Load(), name, numbers, now); err != nil {
			return err
		}
		change := parley.GroupChange{FromMe: true, Added: append(slices.Clone(participants), s.world.contact()), Name: name}
		return errors.Join(s.world.addGroupChange(tx, nil, id, change),
			tx.QueryRow(`SELECT count(*) FROM members WHERE grp = $1`, []any{id}, &members))
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
	db, world := s.world.net.db.Read(ctx), s.world.id.Load()
	row, err := s.world.findGroup(db, id)
	if err != nil {
		return nil, err
	}
	list, err := sqldb.Collect(db, func(row scanner) (parley.Participant, error) {
		var member phone
		var p parley.Participant
		err := row.Scan(&member.Number, &p.Name, &p.IsAdmin, &member.id, &member.hidden, &member.known)
		p.ID = member.idAt(math.MaxInt64)
		return p, err
	}, `SELECT m.number, coalesce(p.name, ''), m.admin, coalesce(p.id, 0), coalesce(p.hidden, 0), coalesce(p.known, 0)
		FROM members m LEFT JOIN phones p ON p.world = $2 AND p.number = m.number
		WHERE m.grp = $1 ORDER BY m.number`, row, world)
	channel := parley.Participant{ID: parley.NewContactID(s.world.number), Name: s.name, IsAdmin: true, IsOwner: true}
	return append([]parley.Participant{channel}, list...), err
}

// createGroup stores a group with its members besides the channel itself.
func createGroup(tx *sqldb.Tx, world int64, name string, members []parley.ContactID, at time.Time) (id int64, err error) {
	id, err = tx.Insert(`INSERT INTO groups (world, name, created_at) VALUES ($1, $2, $3)`, world, name, at.UnixMilli())
	if err != nil {
		return 0, err
	}
	return id, sqldb.Each(members, func(member parley.ContactID) error { return tx.Do(addMember, id, member.Number()) })
}

const (
	addMember    = `INSERT INTO members (grp, number) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	removeMember = `DELETE FROM members WHERE grp = $1 AND number = $2`

	setGroupTimer = `UPDATE groups SET timer = $2 WHERE id = $1`
)

func (w *world) group(id int64, name string, created, members int64) parley.Group {
	return parley.Group{
		ID: groupID(id), Name: name, CreatedAt: time.UnixMilli(created).UTC(), Owner: parley.NewContactID(w.number), IsOwner: true,
		CanAddMember: true, ParticipantCount: int(members) + 1, // and the channel
	}
}

// The ids of groups look as on the real network.
const (
	groupPrefix = "120363"
	groupServer = "@g.us"
)

// toGroupID is groupID; empty for row 0, which is no group.
func toGroupID(row int64) parley.GroupID {
	if row == 0 {
		return ""
	}
	return groupID(row)
}

func groupID(row int64) parley.GroupID {
	return parley.GroupID(fmt.Sprintf("%s%012d%s", groupPrefix, row, groupServer))
}

func groupRow(id parley.GroupID) (int64, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(string(id), groupServer), groupPrefix)
	row, err := strconv.ParseInt(digits, 10, 64)
	return row, ok && err == nil && groupID(row) == id
}

func (w *world) contact() parley.ContactID { return parley.NewContactID(w.number) }

// findGroup returns the row of a group that the channel is in. If there is none the error is [parley.ErrNotFound].
func (w *world) findGroup(c *sqldb.Conn, id parley.GroupID) (row int64, err error) {
	row, ok := groupRow(id)
	if !ok {
		return 0, parley.ErrNotFound
	}
	var found int
	err = c.QueryRow(`SELECT count(*) FROM groups WHERE id = $1 AND world = $2 AND gone = 0`, []any{row, w.id.Load()}, &found)
	if err == nil && found == 0 {
		err = parley.ErrNotFound
	}
	return row, err
}

// members returns the phones of a group's members.
func (w *world) members(tx *sqldb.Tx, group int64) ([]*phone, error) {
	numbers, err := sqldb.Collect(tx.Conn, sqldb.ScanOne[string], `SELECT number FROM members WHERE grp = $1 ORDER BY number`, group)
	if err != nil {
		return nil, err
	}
	phones := make([]*phone, len(numbers))
	for i, number := range numbers {
		if phones[i], err = w.phone(tx, number); err != nil {
			return nil, err
		}
	}
	return phones, nil
}

// writeToGroup writes a message or operation to the phones of a group. What phones refuse in a chat of two, they get in a
// group.
func (t *sendTx) writeToGroup(m *parley.Message, copies int) (refusal, err error) {
	switch m.Content.(type) {
	case parley.Star, parley.Archive:
		return nil, nil // private to the channel: no phone sees it
	}
	row, err := t.world.findGroup(t.tx.Conn, m.Chat.Group())
	if errors.Is(err, parley.ErrNotFound) {
		return network.ErrNotInGroup, nil
	}
	if err != nil {
		return nil, err
	}
	if c, ok := m.Content.(parley.Timer); ok {
		return nil, t.tx.Do(setGroupTimer, row, c.Seconds)
	}
	var timer int
	if err := t.tx.QueryRow(`SELECT timer FROM groups WHERE id = $1`, []any{row}, &timer); err != nil {
		return nil, err
	}
	members, err := t.world.members(t.tx, row)
	if err != nil {
		return nil, err
	}
	for _, p := range members {
		switch {
		case !p.OnNetwork:
		case m.Content.Kind().InHistory():
			err = t.deliver(m, p, row, timer, copies)
		default:
			err = t.applyOperation(m, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

var errNotMember = parley.InvalidField("group_id", "group_id must be the id of a group that this phone and the channel are in.")

// asMember runs do in a transaction with the row of a group that a phone is in, and the other members.
func (w *world) asMember(
	ctx context.Context, p *phone, group parley.GroupID, do func(tx *sqldb.Tx, p *phone, row int64, others []*phone) error,
) error {
	return w.write(ctx, "act in a group", func(tx *sqldb.Tx) error {
		row, err := w.findGroup(tx.Conn, group)
		if errors.Is(err, parley.ErrNotFound) {
			return errNotMember
		}
		if err != nil {
			return err
		}
		members, err := w.members(tx, row)
		if err != nil {
			return err
		}
		self := slices.IndexFunc(members, func(other *phone) bool { return other.Number == p.Number })
		if self < 0 {
			return errNotMember
		}
		return do(tx, members[self], row, slices.Delete(slices.Clone(members), self, self+1))
	})
}

// sendInGroup sends a message of a phone to a group: to the channel and the other members.
func (w *world) sendInGroup(ctx context.Context, p *phone, m *Message, o Outgoing) error {
	return w.asMember(ctx, p, o.Group, func(tx *sqldb.Tx, p *phone, row int64, others []*phone) error {
		if !o.Owner { // who owns the group
			if err := checkMay(tx, row, p, `announce`, "In this group only admins may write."); err != nil {
				return err
			}
		}
		m.ID.Chat, m.group = o.Group.Chat(), row
		if err := tx.QueryRow(`SELECT timer FROM groups WHERE id = $1`, []any{row}, &m.Timer); err != nil {
			return err
		}
		if o.Owner {
			return w.addOwnMessage(tx, m, "", append(others, p)...)
		}
		if err := w.addPhoneMessage(tx, p, m); err != nil {
			return err
		}
		return sqldb.Each(others, func(other *phone) error {
			_, _, err := w.insertMessage(tx, other, fromMember, m, p.Number)
			return err
		})
	})
}

// deleteForMembers deletes a message of a phone on the phones of the other members.
func (w *world) deleteForMembers(ctx context.Context, p *phone, m Message) error {
	return w.asMember(ctx, p, groupID(m.group), func(tx *sqldb.Tx, _ *phone, _ int64, others []*phone) error {
		return sqldb.Each(others, func(other *phone) error {
			return tx.Do(deleteMessage, other.id, string(m.ID.ID), fromMember, int64(parley.Deleted))
		})
	})
}

// LeaveGroup makes a phone leave a group.
func (n *Network) LeaveGroup(ctx context.Context, channel parley.ChannelCode, number string, group parley.GroupID) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	return w.asMember(ctx, p, group, func(tx *sqldb.Tx, p *phone, row int64, _ []*phone) error {
		return errors.Join(tx.Do(removeMember, row, p.Number),
			w.addGroupChange(tx, p, row, parley.GroupChange{Removed: []parley.ContactID{p.ContactID}}))
	})
}

// RenameGroup gives a group another name, as a phone.
func (n *Network) RenameGroup(ctx context.Context, channel parley.ChannelCode, number string, group parley.GroupID, name string) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	return w.asMember(ctx, p, group, func(tx *sqldb.Tx, p *phone, row int64, _ []*phone) error {
		return cmp.Or(checkMay(tx, row, p, `locked`, "Only admins may change this group."),
			tx.Do(`UPDATE groups SET name = $1 WHERE id = $2`, name, row),
			w.addGroupChange(tx, p, row, parley.GroupChange{Name: name}))
	})
}

// SetGroupTimer sets the timer of a group, as a phone.
func (n *Network) SetGroupTimer(ctx context.Context, channel parley.ChannelCode, number string, group parley.GroupID, seconds int) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	return w.asMember(ctx, p, group, func(tx *sqldb.Tx, p *phone, row int64, _ []*phone) error {
		return cmp.Or(checkMay(tx, row, p, `locked`, "Only admins may change this group."), tx.Do(setGroupTimer, row, seconds))
	})
}

// addGroupChange reports a change of a group by a phone; nil: by the channel.
func (w *world) addGroupChange(tx *sqldb.Tx, by *phone, row int64, c parley.GroupChange) error {
	c.GroupID, c.FromMe = groupID(row), by == nil
	if by != nil {
		c.By = by.ContactID
	}
	return w.addEvent(tx, by, event{Type: groupEvent, Group: row, Change: &c})
}

func (s *session) UpdateParticipants(ctx context.Context, id parley.GroupID, add bool, members []parley.ContactID) ([]error, error) {
	errs := make([]error, len(members))
	err := s.changeGroup(ctx, id, func(tx *sqldb.Tx, row int64) error {
		var changed []parley.ContactID
		for i, member := range members {
			errs[i] = nil // an earlier run of the transaction may have set it
			done, err := s.updateMember(tx, row, add, member)
			if refused, ok := errors.AsType[*network.Error](err); ok {
				errs[i] = refused
				continue
			}
			if err != nil {
				return err
			}
			if done {
				changed = append(changed, member)
			}
		}
		switch {
		case len(changed) == 0:
			return nil
		case add:
			return s.world.addGroupChange(tx, nil, row, parley.GroupChange{Added: changed})
		}
		return s.world.addGroupChange(tx, nil, row, parley.GroupChange{Removed: changed})
	})
	return errs, err
}

// updateMember adds or removes one member and reports whether that changed something.
func (s *session) updateMember(tx *sqldb.Tx, row int64, add bool, member parley.ContactID) (bool, error) {
	query := removeMember
	p, err := s.world.phone(tx, member.Number())
	if err != nil {
		return false, err
	}
	if add {
		if !p.OnNetwork {
			return false, network.Refuse(parley.NotOnNetwork, fmt.Sprintf("%s is not on the network.", member))
		}
		query = addMember
	}
	count, err := tx.Exec(query, row, p.Number)
	return count > 0, err
}

func (s *session) LeaveGroup(ctx context.Context, id parley.GroupID) error {
	return s.changeGroup(ctx, id, func(tx *sqldb.Tx, row int64) error {
		return errors.Join(tx.Do(`UPDATE groups SET gone = 1 WHERE id = $1`, row),
			tx.Do(`UPDATE worlds SET group_count = group_count - 1 WHERE id = $1`, s.world.id.Load()),
			s.world.addGroupChange(tx, nil, row, parley.GroupChange{Removed: []parley.ContactID{s.world.contact()}}))
	})
}

// changeGroup runs do in a transaction with the row of a group that the channel is in.
func (s *session) changeGroup(ctx context.Context, id parley.GroupID, do func(tx *sqldb.Tx, row int64) error) error {
	if err := s.connected(); err != nil {
		return err
	}
	return s.world.write(ctx, "change a group", func(tx *sqldb.Tx) error {
		row, err := s.world.findGroup(tx.Conn, id)
		if err != nil {
			return err
		}
		return do(tx, row)
	})
}

// InviteLink returns a link that only JoinGroup understands.
func (s *session) InviteLink(ctx context.Context, id parley.GroupID) (string, error) {
	if err := s.connected(); err != nil {
		return "", err
	}
	row, err := s.world.findGroup(s.world.net.db.Read(ctx), id)
	return fmt.Sprintf(linkPrefix+"%d", row), err
}

func (s *session) typingInGroup(ctx context.Context, id parley.GroupID, until time.Time) error {
	err := s.changeGroup(ctx, id, func(tx *sqldb.Tx, row int64) error {
		members, err := s.world.members(tx, row)
		tx.OnCommit(func() {
			for _, p := range members {
				s.world.setTyping(p.id, until)
			}
		})
		return err
	})
	if errors.Is(err, parley.ErrNotFound) {
		return network.ErrNotInGroup
	}
	return err
}
