package sandbox

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// checkMay returns an error if a group leaves something to its admins, by a column, and a phone is none.
func checkMay(tx *sqldb.Tx, row int64, p *phone, column, sentence string) error {
	var may int
	err := tx.QueryRow(`SELECT count(*) FROM groups g JOIN members m ON m.grp = g.id
		WHERE g.id = $1 AND m.number = $2 AND (g.`+column+` = 0 OR m.admin = 1)`, []any{row, p.Number}, &may)
	if err == nil && may == 0 {
		return parley.InvalidField("group_id", sentence)
	}
	return err
}

func (s *session) SetAdmins(ctx context.Context, id parley.GroupID, admin bool, members []parley.ContactID) ([]error, error) {
	return s.eachMember(ctx, id, members, func(tx *sqldb.Tx, row int64, number string) (error, error) {
		count, err := tx.Exec(`UPDATE members SET admin = $3 WHERE grp = $1 AND number = $2`, row, number, admin)
		if count == 0 {
			return network.Refuse(parley.Refused, "This contact is not in the group."), err
		}
		return nil, err
	})
}

// eachMember changes something about people in a group; refused is for one of them.
func (s *session) eachMember(ctx context.Context, id parley.GroupID, members []parley.ContactID,
	do func(tx *sqldb.Tx, row int64, number string) (refused, err error),
) ([]error, error) {
	errs := make([]error, len(members))
	err := s.changeGroup(ctx, id, func(tx *sqldb.Tx, row int64) (err error) {
		for i, member := range members {
			p, err := s.world.phone(tx, member.Number())
			if err != nil {
				return err
			}
			if errs[i], err = do(tx, row, p.Number); err != nil {
				return err
			}
		}
		return nil
	})
	return errs, err
}

// ChangeGroup changes a group. Simulated phones show no pictures.
func (s *session) ChangeGroup(ctx context.Context, id parley.GroupID, c parley.GroupPatch) error {
	return s.changeGroup(ctx, id, func(tx *sqldb.Tx, row int64) error {
		err := tx.Do(`UPDATE groups SET name = coalesce($2, name), description = coalesce($3, description), locked = coalesce($4, locked),
			announce = coalesce($5, announce), approval = coalesce($6, approval), closed = coalesce($7, closed) WHERE id = $1`,
			row, optional(c.Name), optional(c.Description), optional(c.OnlyAdminsEdit), optional(c.OnlyAdminsSend), optional(c.JoinApproval),
			optional(c.OnlyAdminsAdd))
		if err != nil || c.Name == nil {
			return err
		}
		return s.world.addGroupChange(tx, nil, row, parley.GroupChange{Name: *c.Name})
	})
}

const linkPrefix = "https://sandbox.invalid/group/"

// JoinGroup returns to a group that the channel left.
func (s *session) JoinGroup(ctx context.Context, link string) (id parley.GroupID, waits bool, err error) {
	if err := s.connected(); err != nil {
		return "", false, err
	}
	row, wrong := strconv.ParseInt(strings.TrimPrefix(link, linkPrefix), 10, 64)
	if wrong != nil {
		return "", false, parley.ErrNotFound
	}
	err = s.world.write(ctx, "join a group", func(tx *sqldb.Tx) error {
		_, err := s.world.findGroup(tx.Conn, groupID(row))
		if !errors.Is(err, parley.ErrNotFound) {
			return err // it is in the group
		}
		count, err := tx.Exec(`UPDATE groups SET gone = 0 WHERE id = $1 AND world = $2`, row, s.world.id.Load())
		if err == nil && count == 0 {
			err = parley.ErrNotFound
		}
		if err != nil {
			return err
		}
		return errors.Join(tx.Do(`UPDATE worlds SET group_count = group_count + 1 WHERE id = $1`, s.world.id.Load()),
			s.world.addGroupChange(tx, nil, row, parley.GroupChange{Added: []parley.ContactID{s.world.contact()}}))
	})
	return groupID(row), false, err
}

func (s *session) JoinRequests(ctx context.Context, id parley.GroupID) ([]parley.JoinRequest, error) {
	if err := s.connected(); err != nil {
		return nil, err
	}
	db := s.world.net.db.Read(ctx)
	row, err := s.world.findGroup(db, id)
	if err != nil {
		return nil, err
	}
	return sqldb.Collect(db, func(row scanner) (parley.JoinRequest, error) {
		var p phone
		var at int64
		err := row.Scan(&p.Number, &at, &p.id, &p.hidden, &p.known)
		return parley.JoinRequest{ID: p.idAt(math.MaxInt64), At: time.UnixMilli(at).UTC()}, err
	}, `SELECT r.number, r.at, p.id, p.hidden, p.known FROM join_requests r JOIN phones p ON p.world = $2 AND p.number = r.number
		WHERE r.grp = $1 ORDER BY r.at, r.number`, row, s.world.id.Load())
}

func (s *session) AnswerRequests(ctx context.Context, id parley.GroupID, approve bool, members []parley.ContactID) ([]error, error) {
	return s.eachMember(ctx, id, members, func(tx *sqldb.Tx, row int64, number string) (error, error) {
		count, err := tx.Exec(`DELETE FROM join_requests WHERE grp = $1 AND number = $2`, row, number)
		switch {
		case err == nil && count == 0:
			return network.Refuse(parley.Refused, "This contact has not asked to join."), nil
		case err != nil || !approve:
			return nil, err
		}
		return nil, errors.Join(tx.Do(addMember, row, number),
			s.world.addGroupChange(tx, nil, row, parley.GroupChange{Added: []parley.ContactID{parley.NewContactID(number)}}))
	})
}

// JoinGroup makes a phone join a group that the channel is in, or ask to be let in where that is needed.
func (n *Network) JoinGroup(ctx context.Context, channel parley.ChannelCode, number string, group parley.GroupID) error {
	w, p, err := n.actor(ctx, channel, number)
	if err != nil {
		return err
	}
	return w.write(ctx, "join a group", func(tx *sqldb.Tx) error {
		row, err := w.findGroup(tx.Conn, group)
		if errors.Is(err, parley.ErrNotFound) {
			return parley.InvalidField("group_id", "group_id must be the id of a group that the channel is in.")
		}
		var asks, inside bool
		if err == nil {
			err = tx.QueryRow(`SELECT approval, (SELECT count(*) FROM members WHERE grp = groups.id AND number = $2) FROM groups WHERE id = $1`,
				[]any{row, p.Number}, &asks, &inside)
		}
		switch {
		case err != nil || inside:
			return err
		case asks:
			return tx.Do(`INSERT INTO join_requests (grp, number, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
				row, p.Number, time.Now().UnixMilli())
		}
		return errors.Join(tx.Do(addMember, row, p.Number),
			w.addGroupChange(tx, p, row, parley.GroupChange{Added: []parley.ContactID{p.ContactID}}))
	})
}
