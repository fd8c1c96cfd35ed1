package api

import (
	"context"
	"errors"

	"parley"
	"parley/internal/media"
	"parley/internal/network"
)

// groupAdmin returns the session of the channel, or an error if a field is wrong.
func (s *server) groupAdmin(r *request) (network.GroupAdmin, error) {
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s.config.Gateway.GroupAdmin(r.channel.Code)
}

func (s *server) setAdmins(admin bool) endpoint {
	return func(ctx context.Context, r *request) (any, error) {
		id, members := r.Group("group_id"), readMembers(r.Form)
		session, err := s.groupAdmin(r)
		if err != nil {
			return nil, err
		}
		errs, err := session.SetAdmins(context.WithoutCancel(ctx), id, admin, members)
		if err != nil {
			return nil, unknownGroup(err)
		}
		return membersResponse(map[bool]string{true: "Participants promoted", false: "Participants demoted"}[admin], id, members, errs), nil
	}
}

// changeGroup changes what read returns.
func (s *server) changeGroup(read func(*request) parley.GroupPatch) endpoint {
	return func(ctx context.Context, r *request) (any, error) {
		id, change := r.Group("group_id"), read(r)
		session, err := s.groupAdmin(r)
		if err != nil {
			return nil, err
		}
		err = session.ChangeGroup(context.WithoutCancel(ctx), id, change)
		return ok("Group changed", groupData{GroupID: id}), unknownGroup(err)
	}
}

func readGroupName(r *request) parley.GroupPatch {
	return parley.GroupPatch{Name: new(r.Text("name", 1, 100))}
}

func readDescription(r *request) parley.GroupPatch {
	return parley.GroupPatch{Description: new(r.Text("description", 0, 2048))}
}

func readGroupSettings(r *request) parley.GroupPatch {
	flag := func(name string) *bool { return given(r, name, func() bool { return r.Bool(name, false) }) }
	p := parley.GroupPatch{OnlyAdminsEdit: flag("only_admins_edit"), OnlyAdminsSend: flag("only_admins_send"),
		OnlyAdminsAdd: flag("only_admins_add"), JoinApproval: flag("join_approval")}
	if p == (parley.GroupPatch{}) {
		r.Fail("only_admins_send", "or another setting is required: only_admins_edit, only_admins_add or join_approval, true or false.")
	}
	return p
}

func (s *server) changeGroupPicture(ctx context.Context, r *request) (any, error) {
	id, image := r.Group("group_id"), readImage(r.Form)
	session, err := s.groupAdmin(r)
	if err != nil {
		return nil, err
	}
	drafts, err := s.drafts(ctx, r, r.channel.Code, id.Chat(), []outgoing{image})
	if err != nil {
		return nil, err
	}
	defer s.discard(context.WithoutCancel(ctx), drafts)
	icon, err := s.config.Media.Icon(ctx, *parley.MediaIn(drafts[0].Content))
	if e, ok := errors.AsType[*media.Error](err); ok {
		err = parley.InvalidField("file", e.Sentence)
	}
	if err != nil {
		return nil, err
	}
	err = session.ChangeGroup(context.WithoutCancel(ctx), id, parley.GroupPatch{Picture: &icon})
	return ok("Group changed", groupData{GroupID: id}), unknownGroup(err)
}

type joinedData struct {
	GroupID parley.GroupID `json:"group_id"`
	Waits   bool           `json:"waits"` // an admin has to let the channel in
}

func (s *server) joinGroup(ctx context.Context, r *request) (any, error) {
	link := r.Text("link", 1, 200)
	session, err := s.groupAdmin(r)
	if err != nil {
		return nil, err
	}
	id, waits, err := session.JoinGroup(context.WithoutCancel(ctx), link)
	err = notFoundAs(err, parley.InvalidField("link", "link does not lead to a group, or was revoked. Ask for a new one."))
	return ok(map[bool]string{false: "Joined the group", true: "Asked to join; an admin has to agree"}[waits], joinedData{id, waits}), err
}

type joinRow struct {
	ID parley.ContactID `json:"id"`
	At string           `json:"at"`
}

func (s *server) joinRequests(ctx context.Context, r *request) (any, error) {
	id := r.Group("group_id")
	session, err := s.groupAdmin(r)
	if err != nil {
		return nil, err
	}
	all, err := session.JoinRequests(ctx, id)
	return ok("OK", mapped(all, func(q parley.JoinRequest) joinRow { return joinRow{q.ID, parley.Stamp(q.At)} })), unknownGroup(err)
}

func (s *server) answerRequests(ctx context.Context, r *request) (any, error) {
	id, members, approve := r.Group("group_id"), readMembers(r.Form), r.Bool("approve", false)
	if !r.Has("approve") {
		r.Fail("approve", "is required: true or false.")
	}
	session, err := s.groupAdmin(r)
	if err != nil {
		return nil, err
	}
	errs, err := session.AnswerRequests(context.WithoutCancel(ctx), id, approve, members)
	if err != nil {
		return nil, unknownGroup(err)
	}
	return membersResponse(map[bool]string{true: "Let in", false: "Turned away"}[approve], id, members, errs), nil
}
