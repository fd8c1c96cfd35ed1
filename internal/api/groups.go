package api

import (
	"context"
	"errors"
	"regexp"

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
}

type groupActions struct {
	JoinApproval bool `json:"join_approval"`
	CanAddMember bool `json:"can_add_member"`
}

func groupOf(g parley.Group) groupRow {
	return groupRow{
		ID: g.ID, Name: g.Name, CreatedAt: parley.Stamp(g.CreatedAt), Owner: g.Owner, Restricted: g.Restricted,
		IsCommunity: g.IsCommunity, IsOwner: g.IsOwner, ParticipantCount: g.ParticipantCount,
		Actions: groupActions{JoinApproval: g.JoinApproval, CanAddMember: g.CanAddMember},
	}
}

func (s *server) groups(ctx context.Context, r *request) (any, error) {
	page := r.Page()
	session, err := s.session(r)
	if err != nil {
		return nil, err
	}
	groups, total, err := session.Groups(ctx, page)
	return okPage(mapped(groups, groupOf), page, total), err
}

// maxParticipants is the limit of WhatsApp.
const maxParticipants = 1024

func (s *server) createGroup(ctx context.Context, r *request) (any, error) {
	name := r.Text("name", 1, 100)
	var participants []parley.ContactID
	r.List("participants", 1, maxParticipants, true, func(f form.Form, index string) {
		if member, isObject := f.Object(index, true); isObject {
			participants = append(participants, member.Contact("id"))
		}
	})
	if err := r.Err(); err != nil {
		return nil, err
	}
	for _, p := range participants {
		if err := r.channel.Accepts(p); err != nil {
			return nil, err
		}
	}
	session, err := s.Gateway.Session(r.channel.Code)
	if err != nil {
		return nil, err
	}
	if err := s.beginKey(ctx, r); err != nil {
		return nil, err
	}
	// Continue if the caller leaves: with a key it retries.
	g, err := session.CreateGroup(context.WithoutCancel(ctx), name, participants)
	if err != nil && network.ClassOf(err) != network.Unknown {
		err = errors.Join(err, s.removeKey(ctx, r))
	}
	return ok("Group created", groupOf(g)), err
}

var groupPattern = regexp.MustCompile(`^[0-9-]{1,64}@g\.us$`)

func (s *server) participants(ctx context.Context, r *request) (any, error) {
	id := r.Matching("group_id", groupPattern, "the id of a group, for example 120363020000000001@g.us")
	session, err := s.session(r)
	if err != nil {
		return nil, err
	}
	members, err := session.Participants(ctx, parley.GroupID(id))
	return ok("OK", members),
		notFoundAs(err, parley.InvalidField("group_id", "group_id names a group that does not exist on this channel."))
}
