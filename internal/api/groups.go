package api

import (
	"context"
	"errors"
	"slices"

	"parley"
	"parley/internal/api/form"
	"parley/internal/network"
)

type groupRow struct {
	ID               parley.GroupID   `json:"id"`
	Name             string           `json:"name"`
	CreatedAt        string           `json:"created_at"`
	Owner            parley.ContactID `json:"owner"`
	Restricted       bool             `json:"restricted"`
	IsCommunity      bool             `json:"is_community"`
	IsOwner          bool             `json:"is_owner"`
	Actions          groupActions     `json:"actions"`
	ParticipantCount int              `json:"participant_count"`
	Description      string           `json:"description"`
	OnlyAdminsSend   bool             `json:"only_admins_send"`
	Timer            int              `json:"disappearing_seconds"`
}

type groupActions struct {
	JoinApproval bool `json:"join_approval"`
	CanAddMember bool `json:"can_add_member"`
}

func toGroupRow(g parley.Group) groupRow {
	return groupRow{
		ID: g.ID, Name: g.Name, CreatedAt: parley.Stamp(g.CreatedAt), Owner: g.Owner, Restricted: g.Restricted,
		IsCommunity: g.IsCommunity, IsOwner: g.IsOwner, ParticipantCount: g.ParticipantCount,
		Description: g.Description, OnlyAdminsSend: g.OnlyAdminsSend, Timer: g.Timer,
		Actions: groupActions{JoinApproval: g.JoinApproval, CanAddMember: g.CanAddMember},
	}
}

func (s *server) groups(ctx context.Context, r *request) (any, error) {
	page, search := r.Page(), r.OptionalText("search", 1, maxSought)
	session, err := s.groupSession(r)
	if err != nil {
		return nil, err
	}
	groups, total, err := searched(page, search, func(page parley.Page) ([]parley.Group, int64, error) {
		return session.Groups(ctx, page)
	}, func(g parley.Group) (name, number string) { return g.Name, "" })
	return okPage(mapped(groups, toGroupRow), page, total), err
}

// groupSession returns the session of the channel, or an error if a field is wrong.
func (s *server) groupSession(r *request) (network.Groups, error) {
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s.config.Gateway.Groups(r.channel.Code)
}

// maxParticipants is the limit of WhatsApp.
const maxParticipants = 1024

func (s *server) createGroup(ctx context.Context, r *request) (any, error) {
	name := r.Text("name", 1, 100)
	participants := readMembers(r.Form)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := acceptsAll(r.channel, participants); err != nil {
		return nil, err
	}
	session, err := s.config.Gateway.Groups(r.channel.Code)
	if err != nil {
		return nil, err
	}
	if err := s.beginKey(ctx, r); err != nil {
		return nil, err
	}
	// Continue if the caller leaves: with a key it retries.
	g, err := session.CreateGroup(context.WithoutCancel(ctx), name, participants)
	if err != nil && network.ToClass(err) != network.Unknown {
		err = errors.Join(err, s.removeKey(ctx, r))
	}
	return ok("Group created", toGroupRow(g)), err
}

// readMembers reads the field participants: contact ids, or objects with one.
func readMembers(f form.Form) []parley.ContactID {
	var members []parley.ContactID
	f.List("participants", 1, maxParticipants, true, func(f form.Form, index string) {
		name := index
		if f.IsObject(index) {
			f, _ = f.Object(index, true)
			name = "id"
		}
		if id := f.Member(name); !slices.Contains(members, id) {
			members = append(members, id)
		}
	})
	return members
}

func acceptsAll(channel parley.Channel, members []parley.ContactID) error {
	for _, id := range members {
		if err := channel.Accepts(id); err != nil {
			return err
		}
	}
	return nil
}

func unknownGroup(err error) error {
	return notFoundAs(err, parley.InvalidField("group_id", "group_id names a group that does not exist on this channel."))
}

func (s *server) participants(ctx context.Context, r *request) (any, error) {
	id := r.Group("group_id")
	session, err := s.groupSession(r)
	if err != nil {
		return nil, err
	}
	members, err := session.Participants(ctx, id)
	return ok("OK", members), unknownGroup(err)
}

type memberResult struct {
	ID    parley.ContactID `json:"id"`
	Error *sentError       `json:"error,omitempty"`
}

type membersData struct {
	GroupID      parley.GroupID `json:"group_id"`
	Participants []memberResult `json:"participants"`
}

// updateMembers adds members to a group, or removes them. Doing it twice changes nothing.
func (s *server) updateMembers(add bool) endpoint {
	return func(ctx context.Context, r *request) (any, error) {
		id, members := r.Group("group_id"), readMembers(r.Form)
		session, err := s.groupSession(r)
		if err != nil {
			return nil, err
		}
		if add {
			if err := acceptsAll(r.channel, members); err != nil {
				return nil, err
			}
		}
		errs, err := session.UpdateParticipants(context.WithoutCancel(ctx), id, add, members)
		if err != nil {
			return nil, unknownGroup(err)
		}
		return membersResponse(map[bool]string{true: "Participants added", false: "Participants removed"}[add], id, members, errs), nil
	}
}

func membersResponse(done string, id parley.GroupID, members []parley.ContactID, errs []error) envelope {
	e := ok(done, nil)
	data := membersData{GroupID: id, Participants: make([]memberResult, len(members))}
	for i, member := range members {
		data.Participants[i].ID = member
		if errs[i] != nil {
			data.Participants[i].Error = memberError(errs[i])
			e.Success, e.Message = false, data.Participants[i].Error.Message
		}
	}
	e.Data = data
	return e
}

func memberError(err error) *sentError {
	if e, ok := errors.AsType[*network.Error](err); ok && e.Class == network.Permanent {
		return &sentError{e.Failure.Code, e.Failure.Message}
	}
	return &sentError{parley.Refused, "The network did not change this participant. Try again."}
}

type groupData struct {
	GroupID parley.GroupID `json:"group_id"`
	Link    string         `json:"link,omitempty"`
}

func (s *server) leaveGroup(ctx context.Context, r *request) (any, error) {
	id := r.Group("group_id")
	session, err := s.groupSession(r)
	if err != nil {
		return nil, err
	}
	err = session.LeaveGroup(context.WithoutCancel(ctx), id)
	return ok("Left the group", groupData{GroupID: id}), unknownGroup(err)
}

func (s *server) inviteLink(ctx context.Context, r *request) (any, error) {
	id := r.Group("group_id")
	session, err := s.groupSession(r)
	if err != nil {
		return nil, err
	}
	link, err := session.InviteLink(ctx, id)
	return ok("OK", groupData{id, link}), unknownGroup(err)
}
